"""What a candidate's extension may take from elsewhere and still be called its own work: a list of what handling memory,
numbers, threads, Python's objects and PyTorch's tensors takes.

All else counts as another's work, whatever it does and whatever it is called: a library's product in any spelling, what
PyTorch has behind the place where its profiler records, files and addresses from which other code could be reached.
What is here does no arithmetic on arrays, or does it where the profiler records it.
"""

from __future__ import annotations

import re

# Functions of C and the compilers' own, whole names.
_C = re.compile("|".join((
    # memory and text; no mapping of files or of memory that may be executed
    r"malloc|calloc|realloc|free|aligned_alloc|posix_memalign|memalign|valloc|malloc_usable_size|madvise",
    r"(?:__)?mem(?:cpy|move|set|chr|rchr|cmp|mem|pcpy)(?:_chk)?|bcmp|bzero|wmem\w+",
    r"(?:__)?(?:str|wcs)(?:n?len|n?c(?:mp|py|at)|[pl]cpy|lcat|r?chr|chrnul|c?spn|pbrk|str|casestr|n?casecmp|n?dup|tok(?:_r)?|coll|"
    r"xfrm|error(?:_r)?|sep|to(?:d|f|ld?|ll|ull?|imax|umax)|ftime)(?:_l|_r|_chk)?(?:_internal)?",
    r"is(?:al(?:num|pha)|blank|cntrl|x?digit|graph|lower|print|punct|space|upper)|to(?:lower|upper)|__ctype_\w+",
    # printing and reading from text; no opening of files, in which other code or its place in memory may be read
    r"(?:__)?v?(?:f|s|sn|as)?printf(?:_chk)?|f?puts|f?putc|putchar|fwrite|fflush|perror|stdout|stderr|v?sscanf|__isoc\d\d_\w+",
    # clocks and pauses
    r"clock|clock_gettime|gettimeofday|time|difftime|nanosleep|usleep|sleep",
    # threads, by name; what they are used for beside PyTorch's operators is looked at in `linked`
    r"pthread_\w+|sem_\w+|(?:thrd|mtx|cnd|tss)_\w+|call_once|__once_proxy|(?:__)?sched_(?:yield|[gs]etaffinity|getcpu|cpu\w+)",
    r"GOMP_(?!target|offload|set_offload)\w+|omp_(?:get|set|in|is|init|destroy|unset|test|alloc|free|pause|display)\w*",
    r"__kmpc_\w+|kmp_\w+|__TBB_\w+",
    # of the library of C what computes with single values
    r"abort|exit|_exit|atexit|qsort(?:_r)?|bsearch|l?l?abs|l?l?div|s?rand(?:_r|om)?|random|drand48|(?:secure_)?getenv|sysconf",
    r"getpagesize|get_nprocs\w*|(?:__?)?(?:sig)?setjmp|_?longjmp|__longjmp_chk",
    r"__(?:errno_location|assert\w*|stack_chk_\w+|chk_fail|fortify_fail|libc_single_threaded|tls_get_addr|gmon_start__)",
    # the mathematics of single values, and of the vectors that a compiler makes of a loop over them
    r"(?:a?(?:cos|sin|tan)h?(?:pi)?|atan2|sincos|exp(?:2|10|m1)?|log(?:2|10|1p|b)?|pow|sqrt|cbrt|hypot|erfc?|[lt]gamma|gamma|"
    r"ceil|floor|trunc|l?l?r(?:ound|int)|roundeven|nearbyint|fabs|fdim|fma|fmax|fmin|fmod|remainder|remquo|frexp|ldexp|modf|"
    r"scalbl?n|ilogb|nextafter|nexttoward|copysign|nan|signgam|j[01n]|y[01n]|drem|significand|finite|isinf|isnan|"
    r"c(?:abs|arg|conj|exp|imag|log|pow|proj|real|sqrt|a?(?:cos|sin|tan)h?))(?:f|l|f16|f32|f64|f128|f32x|f64x|q|_r)?",
    r"__\w+_finite|__(?:signbit|fpclassify|isnan|isinf|finite|issignaling|iseqsig)[fl]?\w*",
    r"fe(?:get|set|raise|test|clear|hold|update|enable|disable)\w+",
    r"_ZGV[a-z][MN](?:\d+|x)[vul]\w*",
    # the compilers' own: exceptions, types at run time, arithmetic of wide and narrow numbers, which processor this is
    r"__cxa_\w+|__g(?:xx|cc)_personality_v0|__dynamic_cast|_ITM_\w+",
    r"_Unwind_(?:Resume(?:_or_Rethrow)?|RaiseException|DeleteException|Backtrace|[GS]et(?:IP|IPInfo|GR|CFA|LanguageSpecificData))",
    r"__cpu_(?:model|indicator_init|features2)|__(?:u?div|u?mod|u?divmod|mul|ash[lr]|lshr|neg|cmp|ucmp|c[lt]z|popcount|bswap|"
    r"parity|ffs)[sdt]i\d?|__(?:mul|div)[shdxtb]c3|__(?:extend|trunc|fix|fixuns|float|floatun|floatuns|powi|add|sub|mul|div|"
    r"neg|eq|ne|[gl][te]|unord)[hbsdxt][a-z]{1,3}\d?",
    r"_Z(?:nw|na|dl|da)\w+",
)))
# Functions of Python on objects; none that calls what an object stands for, evaluates, imports, or has it compute.
_PYTHON = re.compile("|".join((
    r"_?Py(?:Arg|Bool|Buffer|ByteArray|Bytes|Cell|CFunction|CMethod|Complex|Dict|Err|Exc|Exception|Float|Frame|FrozenSet|GC|"
    r"GILState|Gen|Index|InstanceMethod|InterpreterState|Iter|List|Long|Mem|MemoryView|Method|Module|ModuleDef|Property|Set|"
    r"Slice|State|StructSequence|ThreadState|Tuple|Type|Unicode|Weakref)_\w+",
    r"PyBaseObject_Type|PyCallable_Check|PyCapsule_(?!Import)\w+|PyThread_tss_\w+|PyThread_\w*lock|PySys_(?:Write|Format)\w+",
    r"PyMapping_(?:Check|Size|Length|Keys|Values|Items|HasKey|GetItemString|SetItemString)\w*",
    r"PySequence_(?:Check|Size|Length|GetItem|SetItem|Tuple|List|Fast|Contains)",
    r"PyNumber_(?:Check|Long|Float|Index|AsSsize_t|Add)",  # pybind11 itself adds
    r"_?PyObject_(?:Get|Set|Has|Del|Is|Generic|GC_|Clear|CheckBuffer|New|Init|Free|[MC]alloc|Realloc|Type|Length|Size)\w*",
    r"PyObject_(?:Repr|Str|ASCII|Bytes|Hash|Not|RichCompare(?:Bool)?|SelfIter|CallFunctionObjArgs|CallFinalizer\w*)",
    r"PyEval_(?:(?:Save|Restore|Acquire|Release|Init)Threads?|Get(?:Builtins|Globals|Locals|Frame)|ThreadsInitialized)",
    r"_?Py_(?:\w+Struct|Dealloc|NegativeRefcount|(?:X?New|Inc|Dec)Ref|Is\w*|GetVersion|Version|(?:Va)?BuildValue\w*|FatalError\w*|"
    r"(?:Enter|Leave)RecursiveCall|CheckRecursiveCall|CheckFunctionResult|Repr(?:Enter|Leave)|HashRandomizationFlag)",
    r"THP(?:Dtype|Device|Layout|MemoryFormat|QScheme|Generator|Stream|Storage|Size)\w*|THPVariable(?:Class|_Wrap)|THPUtils_\w+",
)))
# PyTorch's, by the scope that a name lies in. Its operators are taken at the one place where the profiler records them.
_SCOPES = re.compile("|".join((
    r"std(?!::(?:basic_[io]?f(?:ile|stream)|__basic_file|filesystem|experimental))(?:::.*)?",
    r"__cxxabiv1::.*|(?:__gnu_cxx|tbb|pybind11)::.*",
    # errors and warnings, sizes that may be symbols, scalars, types and their names
    r"c10::(?:\w*Error|\w*Warning\w*|[wW]arn\w*|throw\w*|report_\w+|MessageLogger|SourceLocation|toString|operator|Sym\w+|"
    r"Scalar\w*|Half|BFloat16|Float\d\w*|complex|\w*Type|IValue|ivalue|FunctionSchema|Argument|AliasInfo|OperatorName|Symbol|"
    r"QualifiedName|get_default\w+|[dD]emangle\w*|GetExceptionString|StringUtil|str)(?:::.*)?",
    # tensors, their memory, and the state of the thread that they are made in
    r"c10::(?:TensorImpl|UndefinedTensorImpl|TensorOptions|Storage\w*|DataPtr|\w*Allocator\w*|alloc_cpu|free_cpu|intrusive\w*|"
    r"raw|SmallVector\w*|ArrayRef|Optional\w*|(?:impl::)?(?:List|Dict)\w*|Device\w*|Stream\w*|DispatchKey\w*|MemoryFormat|Layout|"
    r"GradMode|AutoGradMode|InferenceMode|ParallelGuard|AutogradMeta\w*|AutogradState)(?:::.*)?",
    r"c10::detail::(?!.*[dD]ispatch).*",
    r"c10::impl::(?:\w*Guard\w*|raw_local_dispatch_key_set|_?force_tls\w*|tls_\w+|getGlobalPyInterpreter|HermeticPyObjectTLS|"
    r"PyObjectSlot|cow|device_guard_impl_registry|[gG]etAutogradMeta\w*|GetAutogradMeta\w*)(?:::.*)?",
    r"caffe2::TypeMeta::.*",
    r"at::_ops::\w+::call",
    r"at::(?:Tensor|TensorBase|TensorMaker|TensorGeometry\w*|TensorArg|TensorIterator\w*|indexing|impl|operator|print|toString|"
    r"NoGradGuard|AutoDispatch\w*|AutoNonVariableTypeMode|SavedTensorDefaultHooks|sequence_number|check\w+|infer\w*size\w*|"
    r"geometry_is_contiguous|getCPUAllocator|functorch::functorchTLSAccessor|RecordFunction::currentThreadId)(?:::.*)?",
    r"at::detail::(?:empty_\w+|scalar_tensor_static|noopDelete|check\w+|\w*computeStorage\w*)",
    r"at::(?:[gs]et_num_threads|get_thread_num|in_parallel_region|init_num_threads|internal::(?:set_thread_num|lazy_init\w*|"
    r"calc_num_tasks\w*|invoke_parallel\w*|_parallel_run)|get_num_interop_threads|intraop_default_num_threads)",
    r"torch::(?:Library|CppFunction|PyWarningHandler|translate_exception_to_python|getTHP\w+|headeronly|dynamo::autograd|"
    r"jit::parse(?:Schema|Name|SchemaOrName))(?:::.*)?",
    r"torch::autograd::(?:AnomalyMode|AutogradContext|AutogradMeta|Edge|ForwardADLevel|ForwardGrad|InputMetadata|Node|"
    r"SavedVariable|TraceableFunction|VariableInfo|CppNode\w*|impl|_?\w*wrap_outputs|collect_next_edges|set_history|"
    r"check_variable_result|extract_vars|deleteNode)(?:::.*)?",
)))
# Of the interface in C what tells of a tensor, makes an empty one and registers an operator.
_STABLE = re.compile(
    r"aoti_torch_(?:get_(?:data_ptr|dim|numel|sizes?|strides?|dtype|device_type|device_index|storage\w*|layout|is_\w+|"
    r"current_\w+)|is_\w+|(?:dtype|device_type|layout|memory_format)_\w+|new_tensor_handle|new_uninitialized_tensor|"
    r"empty_strided|delete_tensor_object|delete_library_object|library_(?:init|def|impl)\w*|check_inf_and_nan|warn)"
)
# A type of the language's own, at run time.
_BUILTIN_TYPE = re.compile(r"_ZT[IS](?:P?K?)*[a-z]")
_MANGLED = re.compile(r"_Z(?:T[VTISHWC]|GV)?(N[rVK]*[RO]?)?")
_LENGTH = re.compile(r"\d+")
_STANDARD = re.compile(r"S[tabsiod]")
_OPERATOR = re.compile(r"[a-z]{2}")


def is_permitted(symbol: str) -> bool:
    """Whether taking `symbol` from elsewhere leaves an extension's work its own."""
    if not symbol.startswith("_Z"):
        return any(each.fullmatch(symbol) for each in (_C, _PYTHON, _STABLE))
    if _C.fullmatch(symbol) or _BUILTIN_TYPE.fullmatch(symbol):
        return True
    return _SCOPES.fullmatch(scope_of(symbol)) is not None


def scope_of(symbol: str) -> str:
    """The name that a mangled `symbol` stands for, up to template arguments: `c10::SymInt::guard_int`; "" for another."""
    head = _MANGLED.match(symbol)
    if head is None:
        return ""
    at, parts = head.end(), []
    if _STANDARD.match(symbol, at):
        parts, at = ["std"], at + 2
    while at < len(symbol):
        length = _LENGTH.match(symbol, at)
        if length is None:
            break
        end = length.end() + int(length[0][:6])
        parts.append(symbol[length.end() : end])
        at = end
        if not head[1] and parts[0] != "std":
            break  # a function of no scope
    if parts and len(parts) < 2 and head[1] and _OPERATOR.match(symbol, at):
        parts.append("operator")
    return "::".join(parts)
