# Made by `hetrace system install`; `hetrace system remove` removes it as long as it is unchanged.
# Programs of this shell start dormant: `hetrace start` can record them later.
if [ -x @HETRACE@ ]; then
    eval "$(@HETRACE@ env 2>/dev/null)"
fi
