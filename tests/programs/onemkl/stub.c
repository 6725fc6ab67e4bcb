/* Names of oneMKL, to link a program that is run with the real library. */
void cblas_dgemm(void) {}
void DftiCreateDescriptor_d_1d(void) {}
void DftiSetValue(void) {}
void DftiGetValue(void) {}
void DftiCommitDescriptor(void) {}
void DftiComputeForward(void) {}
void DftiFreeDescriptor(void) {}
