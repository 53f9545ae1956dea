/* One EM iteration of Dawid-Skene as a plain loop: what the compiled kernels are measured against. */
#include <math.h>
#include <stdint.h>

double plain_em(int64_t n, const int64_t *indptr, const int32_t *cell, const double *table,
                const double *log_class, double *counts, double *mass, int64_t K, double *q) {
  double log_likelihood = 0;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = 0; k < K; k++) q[k] = log_class[k];
    for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
      const double *row = table + (int64_t)cell[e] * K;
      for (int64_t k = 0; k < K; k++) q[k] += row[k];
    }
    double top = q[0], sum = 0;
    for (int64_t k = 1; k < K; k++) if (q[k] > top) top = q[k];
    for (int64_t k = 0; k < K; k++) { q[k] = exp(q[k] - top); sum += q[k]; }
    log_likelihood += top + log(sum);
    for (int64_t k = 0; k < K; k++) { q[k] /= sum; mass[k] += q[k]; }
    for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
      double *row = counts + (int64_t)cell[e] * K;
      for (int64_t k = 0; k < K; k++) row[k] += q[k];
    }
  }
  return log_likelihood;
}
