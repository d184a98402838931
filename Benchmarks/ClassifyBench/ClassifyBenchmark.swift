import BuiltinPolicies
import PolicyEngine
import SandboxModel
import SystemIO

/// Classifies paths of about seven components with the policy `ios`, in one thread, starting at
/// each path's container root: the work of `classify --stdin0` without input and output.
enum ClassifyBenchmark {
  /// Classifies `count` paths. Prints the number of kept ones, the number of the classifier's
  /// states, and the seconds.
  static func run(count: Int) throws {
    let sources = BuiltinPolicies.files.map {
      PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin)
    }
    let policy = try PolicyLibrary(sources).compile(PolicyRequest(layout: .coreSimulator))
    let corpus = PathCorpus(count: count, seed: 42)
    var classifier = Classifier(policy)
    let start = Host.monotonicSeconds()
    let kept = classify(corpus, &classifier)
    let seconds = Host.monotonicSeconds() - start
    print("paths=\(count) kept=\(kept) states=\(classifier.stateCount) seconds=\(seconds)")
  }

  private static func classify(_ corpus: PathCorpus, _ classifier: inout Classifier) -> Int {
    let root = classifier.root(.data)
    let bytes = corpus.bytes.span
    var (start, kept) = (0, 0)
    for end in corpus.ends {
      let state = classifier.descend(root, path: bytes.extracting(start..<end))
      let verdicts = classifier.verdicts(state, EntryFacts(.file, size: 100))
      if verdicts.keep.backup.mode() != .never { kept += 1 }
      start = end
    }
    return kept
  }
}
