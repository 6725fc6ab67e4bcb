/* Nothing of it is in prototypes. */
#pragma once
