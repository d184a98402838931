public import Codecs
public import SandboxModel

/// All layers of a policy, compiled for one layout and one OS version. Immutable.
///
/// The state of a walk is kept in a `Classifier`; each thread creates its own.
public final class CompiledPolicy: Sendable {
  /// The policy's name.
  public let name: String
  /// The policy's display name.
  public let title: String?
  /// The layout for which the policy is compiled, or nil for any layout.
  public let layout: Layout?
  /// The OS version for which the policy is compiled, or nil if it is unknown and the newest one is
  /// assumed.
  public let osVersion: OSVersion?
  /// The layers in ascending order of precedence.
  public let layers: [Layer]
  /// The BLAKE2b-256 digest of the content of all layers, independent of file names.
  public let digest: Digest
  /// The initial verdict of each class.
  public let classes: [DataClass: Verdict]
  /// The handling of whole containers.
  public let containers: [ContainerKind: ContainerTerms]
  /// The retention time of data that operations set aside, in seconds.
  public let retain: [RetainedItem: Int64]
  /// The purge levels, from the mildest to the most severe.
  public let pressure: [Pressure]
  /// The amount of data that an app may keep before it is purged ahead of others.
  public let quotas: [Quota]
  /// The apps known to share a group, by group identifier.
  public let groupMembers: [String: [String]]
  /// The markers to look for; the index of each is its bit in a `MarkSet`.
  public let markers: [Marker]
  /// The sibling names that rules test for; the index of each is its bit in a `SiblingSet`.
  public let siblingNames: [[UInt8]]

  /// The classes for which a layer permits loss with `allow-loss`.
  let lossyClasses: Set<DataClass>
  /// All rules and markers, in order of application.
  let steps: [Step]
  /// The operations of `steps`, stored contiguously.
  let operations: [Operation]
  /// The step of each element of `markers`.
  let markerSteps: [Int]
  let trie: PatternTrie
  /// The initial verdicts at a container's root, by the index of the container kind.
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

  /// The parts of a compiled policy.
  struct Parts {
    let name: String
    let title: String?
    let layout: Layout?
    let osVersion: OSVersion?
    let layers: [Layer]
    let tables: Tables
    var steps: [Step] = []
    var markerSteps: [Int] = []
    var siblingNames: [[UInt8]] = []
    var trie = PatternTrie()
  }
}

extension CompiledPolicy {
  /// The containers to which a rule applies.
  enum Scope: Sendable, Hashable {
    case all
    case app(String)
    case group(String)
  }

  /// A rule or marker in the order in which the steps of all layers are applied.
  struct Step: Sendable {
    /// The rule or marker.
    let origin: Origin
    /// The index of its layer.
    let layer: Int
    /// The containers to which it applies.
    let scope: Scope
    /// Its effect.
    let operation: Operation

    enum Origin: Sendable {
      case rule(Rule)
      case marker(Marker)
    }

    var rule: Rule? { if case .rule(let rule) = origin { rule } else { nil } }
    var marker: Marker? { if case .marker(let marker) = origin { marker } else { nil } }

    var id: String {
      switch origin {
      case .rule(let rule): rule.id
      case .marker(let marker): marker.id
      }
    }

    var location: PolicyLocation {
      switch origin {
      case .rule(let rule): rule.location
      case .marker(let marker): marker.location
      }
    }
  }

  /// A layer of a policy: rules, then marks. A later layer overrides an earlier one.
  public struct Layer: Sendable {
    /// The name in output: of the policy, of the overlay's file, or of the option.
    public let name: String
    /// The origin of its file.
    public let origin: PolicySource.Origin
    /// The part of the policy that it represents.
    public let part: Part
    let rules: [(scope: Scope, rules: [Rule])]
    let markers: [Marker]

    /// The parts of a policy that form layers, in order.
    public enum Part: String, Sendable, Hashable, CaseIterable {
      /// The rules and markers of a file in the chain.
      case chain
      /// The `finally` section of a file in the chain.
      case finally
      /// An overlay.
      case overlay
      /// A file given on the command line.
      case file
      /// Patterns given on the command line with `--exclude` and `--include`.
      case patterns
    }

    init(_ document: PolicyDocument, _ part: Part) {
      name = document.name ?? document.source.name
      origin = document.source.origin
      self.part = part
      if part == .finally {
        rules = [(.all, document.finalRules)]
        markers = document.finalMarkers
      } else {
        rules =
          [(.all, document.rules)] + document.apps.map { (.app($0.owner), $0.rules) }
          + document.groups.map { (.group($0.owner), $0.rules) }
        markers = document.markers
      }
    }

    init(patterns: [Rule]) {
      name = "--exclude, --include"
      origin = .commandLine
      part = .patterns
      rules = [(.all, patterns)]
      markers = []
    }
  }

  /// The tables of all layers, merged: containers and retain by key, pressure by level, quotas by
  /// pattern, classes by class and value.
  struct Tables: Sendable {
    private(set) var classes: [DataClass: Assignment] = [:]
    /// The classes for which a layer permits loss with `allow-loss`.
    private(set) var lossyClasses: Set<DataClass> = []
    private(set) var containers: [ContainerKind: ContainerTerms] = [:]
    private(set) var retain: [RetainedItem: Int64] = [:]
    private(set) var pressure: [Pressure] = []
    private(set) var quotas: [Quota] = []
    private(set) var groupMembers: [String: [String]] = [:]

    init(_ documents: [PolicyDocument]) {
      for document in documents { overlay(document) }
    }

    private mutating func overlay(_ document: PolicyDocument) {
      for (dataClass, settings) in document.classes {
        var assignment = classes[dataClass] ?? Assignment(fields: [], verdict: .silent(dataClass))
        assignment.set(settings.settings)
        classes[dataClass] = assignment
        if settings.allowLoss != nil { lossyClasses.insert(dataClass) }
      }
      for (kind, terms) in document.containers {
        containers[kind] = containers[kind, default: ContainerTerms()].overlaid(by: terms)
      }
      retain.merge(document.retain) { _, later in later }
      groupMembers.merge(document.groupMembers) { _, later in later }
      for level in document.pressure {
        pressure.removeAll { $0.level == level.level }
        pressure.append(level)
      }
      for quota in document.quotas {
        quotas.removeAll { $0.pattern.text == quota.pattern.text }
        quotas.append(quota)
      }
    }

    /// The initial verdict of each class.
    var classVerdicts: [DataClass: Verdict] {
      var verdicts: [DataClass: Verdict] = [:]
      for dataClass in DataClass.allCases {
        verdicts[dataClass] = classes[dataClass]?.verdict ?? .silent(dataClass)
      }
      return verdicts
    }

    /// Returns the initial verdicts of all entries in a container kind.
    func start(_ kind: ContainerKind) -> Verdicts {
      var verdict = classVerdicts[.unknown] ?? .silent()
      if let backup = containers[kind]?.backup {
        verdict.backup = backup.applied(to: verdict.backup)
      }
      return Verdicts(keep: verdict, platform: verdict)
    }
  }
}

// MARK: - Building

extension CompiledPolicy.Parts {
  /// Collects the rules and markers of all layers in order and adds their patterns to the
  /// automaton.
  ///
  /// - Parameter allVersions: Whether to include rules and markers for other OS versions, to check
  ///   them.
  mutating func assemble(allVersions: Bool) -> [PolicyIssue] {
    var issues: [PolicyIssue] = []
    var siblings: [[UInt8]: Int] = [:]
    let classes = tables.classVerdicts
    for (index, layer) in layers.enumerated() {
      for (scope, rules) in layer.rules {
        for rule in rules where allVersions || rule.versions.contains(osVersion) {
          let operation = Operation(
            rule.settings, rule.platform, condition: Operation.Condition(rule.conditions),
            classes: classes)
          let mask = number(siblingsOf: rule, known: &siblings, issues: &issues)
          insert(rule, scope, siblings: mask)
          steps.append(
            CompiledPolicy.Step(
              origin: .rule(rule), layer: index, scope: scope, operation: operation))
        }
      }
      for marker in layer.markers where allVersions || marker.versions.contains(osVersion) {
        append(marker, layer: index, classes: classes, issues: &issues)
      }
    }
    trie.finish(steps.map(\.operation))
    return issues
  }

  private mutating func insert(
    _ rule: Rule, _ scope: CompiledPolicy.Scope, siblings: UInt64
  ) {
    let kinds = layout.map { Set($0.containerKinds) } ?? Set(ContainerKind.allCases)
    for kind in ContainerKind.allCases where rule.kinds.contains(kind) && kinds.contains(kind) {
      trie.insert(rule.pattern, kind: kind, scope: scope, step: steps.count, siblings: siblings)
    }
  }

  private mutating func append(
    _ marker: Marker, layer: Int, classes: [DataClass: Verdict], issues: inout [PolicyIssue]
  ) {
    guard markerSteps.count < MarkSet.maximumCount else {
      issues.append(
        PolicyIssue(
          .value, at: marker.location, "more than \(MarkSet.maximumCount) markers in all layers",
          expected: "fewer"))
      return
    }
    markerSteps.append(steps.count)
    let operation = Operation(
      marker.settings, marker.platform, condition: Operation.Condition(), classes: classes,
      authority: marker.isFile ? .file : .attribute)
    steps.append(
      CompiledPolicy.Step(origin: .marker(marker), layer: layer, scope: .all, operation: operation))
  }

  /// Returns the bits of the sibling names that a rule tests for.
  private mutating func number(
    siblingsOf rule: Rule, known: inout [[UInt8]: Int], issues: inout [PolicyIssue]
  ) -> UInt64 {
    var mask: UInt64 = 0
    for text in rule.conditions.siblings {
      for spelling in Spelling.allCases {
        let name = spelling.spell(Array(text.utf8))
        if known[name] == nil, siblingNames.count < SiblingSet.maximumCount {
          known[name] = siblingNames.count
          siblingNames.append(name)
        }
        guard let bit = known[name] else {
          issues.append(
            PolicyIssue(
              .condition, at: rule.location,
              "more than \(SiblingSet.maximumCount) sibling names in all layers",
              expected: "fewer"))
          return mask
        }
        mask |= 1 << UInt64(bit)
      }
    }
    return mask
  }
}

/// A set of markers; each bit stands for an element of `CompiledPolicy.markers`.
public struct MarkSet: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: UInt64

  /// Creates a set from bits.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Creates the set of one marker, given its index in `CompiledPolicy.markers`.
  public init(marker index: Int) { rawValue = 1 << UInt64(index) }

  /// The maximum number of markers in a policy.
  public static let maximumCount = 64
}

/// A set of names in a directory; each bit stands for an element of `CompiledPolicy.siblingNames`.
public struct SiblingSet: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: UInt64

  /// Creates a set from bits.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Creates the set of one name, given its index in `CompiledPolicy.siblingNames`.
  public init(sibling index: Int) { rawValue = 1 << UInt64(index) }

  /// The maximum number of sibling names in a policy.
  public static let maximumCount = 64
}

extension Device {
  /// Returns the device with the group members that a policy states.
  public func stating(groupsOf policy: CompiledPolicy) -> Device {
    stating(groups: policy.groupMembers)
  }
}
