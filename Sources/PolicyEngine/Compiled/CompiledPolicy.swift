public import Codecs
public import SandboxModel

/// All layers of a policy for one layout and one OS version, compiled; it never changes.
///
/// What it does not hold: any state of a walk. Each thread makes a `Classifier` of its own from it.
public final class CompiledPolicy: Sendable {
  /// The policy's name.
  public let name: String
  /// What people call the policy.
  public let title: String?
  /// The layout for which it is compiled, when it is one.
  public let layout: Layout?
  /// The OS version for which it is compiled; nothing where that is unknown, and then the newest.
  public let osVersion: OSVersion?
  /// The layers, the weakest first.
  public let layers: [PolicyLayer]
  /// BLAKE2b-256 of the content of all layers: what decided, whatever the files were called.
  public let digest: Digest
  /// The verdict that each class starts from.
  public let classes: [DataClass: Verdict]
  /// What happens to whole containers.
  public let containers: [ContainerKind: ContainerTerms]
  /// For how many seconds what operations put aside is kept.
  public let retain: [RetainedItem: Int64]
  /// What a purge does when space is short, the mildest level first.
  public let pressure: [Pressure]
  /// How much an app may have of some data.
  public let quotas: [Quota]
  /// The apps that are known to share a group, by group identifier.
  public let groupMembers: [String: [String]]
  /// The marks to look for; the place of each is its bit in a `MarkSet`.
  public let markers: [Marker]
  /// The names that rules ask for beside an entry; the place of each is its bit in a `SiblingSet`.
  public let siblingNames: [[UInt8]]

  /// The classes of which a layer says by `allow-loss` that they may be lost.
  let lossyClasses: Set<DataClass>
  /// All rules and marks, in the order in which they are applied.
  let steps: [CompiledStep]
  /// The same steps' operations, close together.
  let operations: [Operation]
  /// The step of each of `markers`.
  let markerSteps: [Int]
  let trie: PatternTrie
  /// The verdicts that a container's root starts from, by the kind's place among all kinds.
  let starts: [Verdicts]

  init(_ parts: Parts, digest: Digest) {
    (name, title, layout) = (parts.name, parts.title, parts.layout)
    (osVersion, layers, self.digest) = (parts.osVersion, parts.layers, digest)
    (classes, containers) = (parts.tables.classVerdicts, parts.tables.containers)
    (retain, quotas) = (parts.tables.retain, parts.tables.quotas)
    pressure = parts.tables.pressure.sorted { $0.level < $1.level }
    groupMembers = parts.tables.groupMembers
    lossyClasses = parts.tables.lossyClasses
    (steps, markerSteps) = (parts.steps, parts.markerSteps)
    markers = parts.markerSteps.compactMap { parts.steps[$0].marker }
    operations = parts.steps.map(\.operation)
    siblingNames = parts.siblingNames
    trie = parts.trie
    starts = ContainerKind.allCases.map { parts.tables.start($0) }
  }

  /// What a compiled policy is made of.
  struct Parts {
    let name: String
    let title: String?
    let layout: Layout?
    let osVersion: OSVersion?
    let layers: [PolicyLayer]
    let tables: PolicyTables
    var steps: [CompiledStep] = []
    var markerSteps: [Int] = []
    var siblingNames: [[UInt8]] = []
    var trie = PatternTrie()
  }
}

/// Marks, a bit each; `CompiledPolicy.markers` says which.
public struct MarkSet: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: UInt64

  /// Makes a set of bits.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The set of the mark at a place among `CompiledPolicy.markers`.
  public init(marker index: Int) { rawValue = 1 << UInt64(index) }

  /// How many marks a policy may have.
  public static let maximumCount = 64
}

/// Names that lie in a directory, a bit each; `CompiledPolicy.siblingNames` says which.
public struct SiblingSet: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: UInt64

  /// Makes a set of bits.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The set of the name at a place among `CompiledPolicy.siblingNames`.
  public init(sibling index: Int) { rawValue = 1 << UInt64(index) }

  /// How many names a policy may ask for.
  public static let maximumCount = 64
}
