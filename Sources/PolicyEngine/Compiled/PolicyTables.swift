internal import SandboxModel

/// The tables of all layers, merged: containers and retain by key, pressure by level, quotas by
/// pattern, classes by class and value.
struct PolicyTables: Sendable {
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
