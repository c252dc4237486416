// NORM_FEATURE: norm.wgsl behind a layer whose output is a drafter's feature, which it keeps.
#include norm
