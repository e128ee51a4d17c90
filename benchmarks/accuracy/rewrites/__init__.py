"""Programs written in another way: what the checker says must not depend on the spelling."""
