#include "CLinux.h"

static _Thread_local void *fault_plan;

void *cl_fault_plan(void) { return fault_plan; }
void cl_set_fault_plan(void *plan) { fault_plan = plan; }
