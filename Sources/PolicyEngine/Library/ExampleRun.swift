internal import SandboxModel

/// Runs the examples of a file against its layers.
struct ExampleRun {
  private let document: PolicyDocument
  private let selection: LayerSelection
  private let layout: Layout?
  /// The layers with the rules and markers for all versions.
  private let all: CompiledPolicy
  private var policies: [OSVersion?: CompiledPolicy] = [:]
  private(set) var issues: [PolicyIssue] = []

  init(
    _ document: PolicyDocument, _ selection: LayerSelection, layout: Layout?, all: CompiledPolicy
  ) {
    self.document = document
    self.selection = selection
    self.layout = layout
    self.all = all
  }

  mutating func run() {
    for example in document.examples where isSelected(example) { check(example) }
  }

  /// Whether an example applies to the layout. An example of an overlay over several layouts
  /// applies only to layouts with its container kind.
  private mutating func isSelected(_ example: Example) -> Bool {
    guard let layout, !layout.containerKinds.contains(example.kind) else { return true }
    if document.layouts.count == 1 {
      let kinds = layout.containerKinds.map(\.rawValue).joined(separator: ", ")
      add(
        at: example.location,
        "the layout \(layout.rawValue) has no container '\(example.kind.rawValue)'",
        expected: "one of \(kinds)", kind: .value)
    }
    return false
  }

  private mutating func policy(for version: OSVersion?) -> CompiledPolicy {
    if let known = policies[version] { return known }
    let (policy, _) = selection.compile(
      name: all.name, layout: layout, osVersion: version)
    policies[version] = policy
    return policy
  }

  private mutating func check(_ example: Example) {
    let policy = policy(for: example.osVersion)
    var query = EntryQuery(
      example.kind, app: example.app, group: example.group, path: example.path,
      facts: example.facts)
    for (directory, names) in example.marks {
      query.marks[directory.count] = marks(names, in: policy, of: example)
    }
    for (directory, names) in example.holdings {
      query.siblings[directory.count] = names.reduce(into: SiblingSet()) { set, name in
        let index = policy.siblingNames.firstIndex(of: Array(name.utf8))
        if let index { set.insert(SiblingSet(sibling: index)) }
      }
    }
    var classifier = Classifier(policy, scanStart: Example.scanStart)
    let verdicts = classifier.verdicts(query)
    compare(example, expecting: example.expected, with: verdicts.keep, view: "")
    compare(example, expecting: example.platform, with: verdicts.platform, view: "platform ")
  }

  /// Returns the marks with the given identifiers. An unknown identifier is a mistake, one for
  /// another version is not.
  private mutating func marks(
    _ names: [String], in policy: CompiledPolicy, of example: Example
  ) -> MarkSet {
    var set = MarkSet()
    for name in names {
      if !all.markers.contains(where: { $0.id == name }) {
        let known = all.markers.map(\.id).joined(separator: ", ")
        add(
          at: example.location, "there is no marker '\(name)'",
          expected: known.isEmpty ? "a marker of the policy" : "one of \(known)", kind: .value)
      }
      for (index, marker) in policy.markers.enumerated() where marker.id == name {
        set.insert(MarkSet(marker: index))
      }
    }
    return set
  }

  private mutating func add(
    at location: PolicyLocation, _ problem: String, expected: String, kind: PolicyIssue.Kind
  ) {
    issues.append(PolicyIssue(kind, at: location, problem, expected: expected))
  }

  /// The view of a backup disposition for an example.
  private struct BackupReading {
    private let disposition: BackupDisposition
    private let destination: Destination?

    init(_ disposition: BackupDisposition, _ destination: Destination?) {
      self.disposition = disposition
      self.destination = destination
    }

    /// Returns the wanted and the actual mode, or nil if they agree.
    func difference(from wanted: Settings.Backup) -> (String, String)? {
      if let standard = wanted.standard {
        let mode = disposition.mode(for: destination ?? Destination())
        if mode != standard { return (standard.rawValue, mode.rawValue) }
      }
      let cloud = disposition.mode(for: Destination(isCloud: true))
      if let mode = wanted.cloud, mode != cloud {
        return ("{cloud: \(mode.rawValue)}", "{cloud: \(cloud.rawValue)}")
      }
      let plain = disposition.mode(for: Destination(isUnencrypted: true))
      if let mode = wanted.unencrypted, mode != plain {
        return ("{unencrypted: \(mode.rawValue)}", "{unencrypted: \(plain.rawValue)}")
      }
      return nil
    }
  }
}

// MARK: - Comparing

extension ExampleRun {
  private mutating func compare(
    _ example: Example, expecting expected: Example.Expectation, with verdict: Verdict, view: String
  ) {
    func path() -> String { "\(example.kind.rawValue) '\(PolicyIssue.text(of: example.path))'" }
    func fail(at location: PolicyLocation, _ key: String, wanted: String, got: String) {
      add(
        at: location, "the example \(path()) results in \(view)\(key): \(got)",
        expected: "\(key): \(wanted)", kind: .example)
    }
    if let wanted = expected.dataClass, wanted.value != verdict.dataClass {
      fail(
        at: wanted.location, "class", wanted: wanted.value.rawValue, got: verdict.dataClass.rawValue
      )
    }
    if let wanted = expected.update, wanted.value != verdict.update {
      fail(
        at: wanted.location, "update", wanted: wanted.value.rawValue, got: verdict.update.rawValue)
    }
    if let wanted = expected.restore, wanted.value != verdict.restore {
      fail(
        at: wanted.location, "restore", wanted: wanted.value.rawValue, got: verdict.restore.rawValue
      )
    }
    if let wanted = expected.protection, wanted.value != verdict.protection {
      fail(
        at: wanted.location, "protection", wanted: wanted.value.rawValue,
        got: verdict.protection?.rawValue ?? "no class")
    }
    if let wanted = expected.purge, !wanted.value.accepts(verdict.purge) {
      fail(
        at: wanted.location, "purge", wanted: wanted.value.description,
        got: verdict.purge.description)
    }
    if let wanted = expected.backup {
      let got = BackupReading(verdict.backup, example.destination)
      if let (value, found) = got.difference(from: wanted.value) {
        fail(at: wanted.location, "backup", wanted: value, got: found)
      }
    }
  }
}
