// NORM_CONV: norm.wgsl behind a sublayer of a drafter with convolutions.
#include norm
