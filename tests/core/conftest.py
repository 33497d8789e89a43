from hypothesis import Phase, settings

# For `sabotage.py`: it looks long, and a failure is all it wants to see, not the smallest one.
settings.register_profile(
    "unshrunk",
    settings.get_profile("busy"),
    max_examples=2_000,
    phases=(Phase.explicit, Phase.generate),
)
