from hypothesis import Phase, settings

# For `sabotage.py`: a failure is all it wants to see, not the smallest one.
settings.register_profile(
    "unshrunk", settings.get_profile("busy"), phases=(Phase.explicit, Phase.generate)
)
