# rnnbench: build, test, measure. A fresh machine needs Go and make.

GO      ?= go
BIN     := bin/rnnbench
OUT     ?= out
FUZZ    ?= 20s
PYTHON  ?= python3
CUDA    ?= /usr/local/cuda
export CGO_ENABLED ?= 0

.PHONY: run build lib cuda cuda-tests test-cuda emulate record-cuda test test-all test-anywhere race noasm cross generate check-generate lint figures site fuzz bench check-pytorch check-python rival-onednn clean

## run: build, then a quick reproduction of Appleyard's ladder with table and figure
run: build
	$(BIN) reproduce appleyard-table1 --quick --out $(OUT)

## build: the program
build:
	$(GO) build -trimpath -buildvcs=auto -o $(BIN) ./cmd/rnnbench

## cuda: the worker for NVIDIA GPUs; needs a C compiler and, in $(CUDA), the headers of CUDA 11.8 to 13
## (scripts/fetch-cuda DIR fetches them, for CUDA=DIR); only the driver to run
WITH_CUDA = CGO_ENABLED=1 \
	CGO_CFLAGS="-I$(CURDIR)/device/cuda/nvidia/include -I$(CUDA)/include $(CGO_CFLAGS)" \
	CGO_LDFLAGS="-L$(CUDA)/lib64/stubs $(CGO_LDFLAGS)"
cuda:
	$(WITH_CUDA) $(GO) build -tags cuda -trimpath -buildvcs=auto -o bin/rnnbench-cuda ./cmd/rnnbench-cuda

## lib: the C library bin/librnnbench.so with its header; needs a C compiler. Where $(CUDA) has CUDA's headers, it
## also runs on GPUs and needs the driver to load; CUDA=none leaves them out
lib:
	CGO_ENABLED=1 \
	CGO_CFLAGS="$(if $(LIBCUDA),-I$(CURDIR)/device/cuda/nvidia/include -I$(CUDA)/include )$(CGO_CFLAGS)" \
	CGO_LDFLAGS="$(if $(LIBCUDA),-L$(CUDA)/lib64/stubs )$(CGO_LDFLAGS)" \
	$(GO) build $(if $(LIBCUDA),-tags cuda) -buildmode=c-shared -trimpath -buildvcs=auto -o bin/librnnbench.so ./capi
	cp capi/rnnbench.h bin/rnnbench.h

LIBCUDA = $(wildcard $(CUDA)/include/cuda.h)

## cuda-tests: the worker, the program and the test binaries that scripts/gpu-suite runs on a machine without Go
cuda-tests: cuda build
	$(WITH_CUDA) $(GO) test -c -tags cuda -trimpath -o bin/nvidia.test ./device/cuda/nvidia
	$(GO) test -c -trimpath -o bin/device-cuda.test ./device/cuda
	$(GO) test -c -trimpath -o bin/impl.test ./impl
	$(GO) test -c -trimpath -o bin/tuner.test ./tuner

## test-cuda: the suites on this machine's GPU, in minutes; ALL=1 runs every size and combination of settings
test-cuda: cuda-tests
	scripts/gpu-suite

## emulate: the suites of the CUDA device and of all techniques on it, its kernels run by the processor (needs a C
## compiler; takes many minutes)
emulate:
	RNNBENCH_EMULATE=1 $(GO) test -timeout 60m -run Emulated ./device/cuda ./impl

## record-cuda: measure EXPERIMENT on the first GPU and keep it under results/
record-cuda: build
	scripts/record $(EXPERIMENT) --device cuda:0

## test: every technique, cell, pass and precision at odd sizes, and the program; minutes
test:
	$(GO) vet ./...
	$(GO) test -vet=off -short -timeout 20m ./...

## test-all: every test, large sizes and more combinations of settings included; lint vets the code
test-all:
	$(GO) test -vet=off -timeout 90m ./...

## test-anywhere: the tests as other machines would run them: each instruction set, one processor, no HOME, ...
test-anywhere:
	scripts/test-anywhere

## race: the techniques' schedules and the harness under the race detector (needs a C compiler): the tests of
## packages that start goroutines. The kernels are plain Go here, since assembly is invisible to the detector. Tests
## of memory and of answers are left out, whose goroutines other tests start as well
RACE := CGO_ENABLED=1 $(GO) test -vet=off -race -short -tags noasm -timeout 30m
RACE_PACKAGES := ./device ./device/allreduce ./device/cpu/... ./device/cuda/emulator ./device/worker ./record ./record/files \
	./rnn ./rnn/oracle ./tuner ./tuner/bench ./tuner/progress ./tuner/wisdom
NO_RACE_CPU    := TestProductsAreRight$$
NO_RACE_WORKER := TestDevice$$/^(operations|scans)$$
NO_RACE_RECORD := TestRecordedRunsRead$$|TestCutAnywhere$$|TestRatioCovers$$
NO_RACE_ORACLE := TestWrongPrecision$$|TestWrongValuesOfWholeAnswers$$|TestJumps$$|TestSizes$$|TestGradients$$
NO_RACE_TUNER  := TestNeed$$|TestStepwiseMemory$$|TestLargeP|TestHonestIsRechecked$$|TestFaults|TestBound|OnRecords$$|AtKinks$$|TestKinks|TestImpossible$$|TestConvergesOrSays$$|TestLostByAPeer$$|TestEqualDepth$$|TestLibraryWithFaults$$
race:
	$(RACE) -skip '$(NO_RACE_CPU)|$(NO_RACE_WORKER)|$(NO_RACE_RECORD)|$(NO_RACE_ORACLE)|$(NO_RACE_TUNER)' $(RACE_PACKAGES)
	$(RACE) -run 'TestRaces$$' ./impl
	$(RACE) -run 'TestReplicas|TestFedReplicas$$' ./train
	$(RACE) -run 'TestSideBySide$$' ./rival
	$(RACE) -run 'TestPrecompile$$|TestCache$$|TestMishaps$$' ./device/cuda

## noasm: the tests of what has assembly, without it; RNNBENCH_SIMD=generic has the others run without it as well
noasm:
	$(GO) vet -tags noasm ./device/cpu/...
	$(GO) test -vet=off -short -tags noasm -timeout 20m ./device/cpu/...

## cross: builds for other systems, without optimisation, since nothing runs
UNOPTIMISED := -gcflags='all=-N -l'
cross:
	GOOS=linux   GOARCH=arm64 $(GO) build $(UNOPTIMISED) -o /dev/null ./cmd/rnnbench
	GOOS=darwin  GOARCH=arm64 $(GO) build $(UNOPTIMISED) -o /dev/null ./cmd/rnnbench
	GOOS=windows GOARCH=amd64 $(GO) build $(UNOPTIMISED) -o /dev/null ./cmd/rnnbench
	GOOS=linux   GOARCH=arm64 $(GO) vet $(UNOPTIMISED) ./...

## generate: the assembly kernels, from their generator
generate:
	$(GO) generate ./...

GENERATED := ':(glob)device/cpu/simd/**/*_amd64.s' ':(glob)device/cpu/simd/**/stubs_amd64.go'

## check-generate: fails if what is committed is not what the generator writes
check-generate:
	rm -f device/cpu/simd/*_amd64.s device/cpu/simd/fused/*_amd64.s device/cpu/simd/amx/panels_amd64.s
	$(GO) generate ./device/cpu/simd
	git --no-pager diff --exit-code --stat -- $(GENERATED)
	@new=$$(git ls-files --others --exclude-standard -- $(GENERATED)); test -z "$$new" || { echo "not committed: $$new"; exit 1; }

## lint: gofmt, vet and staticcheck, pinned in go.mod
lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "gofmt these files"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

## figures: write the reports and figures of the recorded results again, and the tables of results/README.md and docs/differences.md
figures: build
	scripts/figures $(BIN)
	$(GO) test ./cmd/rnnbench -run TestRecordedTables -update

## site: write the web site of the recorded results into site/
site: build
	$(BIN) site results -o site

## fuzz: every fuzz test for $(FUZZ) each
fuzz:
	scripts/fuzz $(FUZZ)

## bench: kernels, schedules, and the layers compared with oneDNN
bench:
	$(GO) test -run '^$$' -bench . ./device/cpu/... ./rnn/schedule ./impl ./tuner

## check-pytorch: compare exported points and trainings with PyTorch, where it is installed
check-pytorch: build
	$(PYTHON) scripts/check-pytorch.py $(BIN)
	$(PYTHON) scripts/check-training.py $(BIN)

## check-python: compare the PyTorch module with torch.nn, where PyTorch is installed
check-python: lib
	$(PYTHON) -m unittest discover -s python/tests

## rival-onednn: oneDNN as a rival; needs a C++ compiler and oneDNN 2.x, such as Debian's libdnnl-dev
rival-onednn:
	@mkdir -p bin
	$(CXX) -std=c++17 -O2 -fopenmp -Wall -o bin/rival-onednn rivals/onednn/onednn.cpp -ldnnl

clean:
	rm -rf bin $(OUT)
