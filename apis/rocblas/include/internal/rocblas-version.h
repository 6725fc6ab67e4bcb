/* What rocBLAS' build writes into a header of this name is of no use here. */
#pragma once
