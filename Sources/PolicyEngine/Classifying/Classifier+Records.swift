internal import SandboxModel

extension Classifier {
  /// Computes the record of a state: the data for each step of a walk, and the verdicts.
  mutating func record(_ key: StateKey) -> StateRecord {
    var record = StateRecord()
    for node in key.nodes {
      let place = policy.trie.nodes[Int(node)]
      record.siblings |= place.siblings
      record.hasGlobs = record.hasGlobs || !place.globs.isEmpty
      for edge in place.literals {
        let length = policy.trie.literals.length(edge.literal)
        record.literalLengths |= 1 << UInt64(min(length, 63))
      }
      if globs != nil {
        for edge in place.globs { record.liveGlobs |= 1 << UInt64(edge.glob) }
      }
    }
    record.keepsBelow = keepsBelow(key)
    decide(key, &record)
    return record
  }

  /// Returns the steps that apply at a state, rules and markers, in order.
  private func steps(_ key: StateKey) -> [Int] {
    var steps = key.rules.map { Int($0 >> 1) }
    for (mark, step) in policy.markerSteps.enumerated() where key.marks >> UInt64(mark) & 1 == 1 {
      steps.append(step)
    }
    return steps.sorted()
  }

  /// Computes the verdicts for each entry type from the steps before the first one that depends on
  /// size or age, and records the remaining steps.
  private mutating func decide(_ key: StateKey, _ record: inout StateRecord) {
    let steps = steps(key)
    let known = steps.firstIndex { policy.operations[$0].condition.isDynamic } ?? steps.count
    for type in EntryType.allCases {
      var verdicts = policy.starts[Int(key.kind)]
      for step in steps[..<known]
      where policy.operations[step].condition.types & EntryType.bit(type) != 0 {
        policy.operations[step].apply(to: &verdicts, belowCache: key.isBelowCache)
      }
      table.append(verdicts)
    }
    let last = table.count - StateRecord.types
    let types = EntryType.bit(.file) | EntryType.bit(.database)
    record.asksForDatabases =
      table[last + EntryType.file.index] != table[last + EntryType.database.index]
      || steps[known...].contains {
        policy.operations[$0].condition.types & types != types
          && policy.operations[$0].condition.types & types != 0
      }
    record.remainingStart = UInt32(remaining.count)
    record.remainingCount = UInt32(steps.count - known)
    record.isBelowCache = key.isBelowCache
    remaining.append(contentsOf: steps[known...].map { UInt32($0) })
  }

  /// Applies the steps from the first one that depends on size or age.
  func applyRemaining(_ record: StateRecord, _ facts: EntryFacts, to verdicts: inout Verdicts) {
    let start = Int(record.remainingStart)
    for place in start..<(start + Int(record.remainingCount)) {
      let operation = policy.operations[Int(remaining[place])]
      guard operation.condition.holds(facts, scanStart: scanStart) else { continue }
      operation.apply(to: &verdicts, belowCache: record.isBelowCache)
    }
  }

  /// Returns a bit for each view and destination that tells whether a backup may include something
  /// below.
  private func keepsBelow(_ key: StateKey) -> UInt8 {
    var bits: UInt8 = 0
    for view in VerdictView.allCases {
      for destination in Destination.allCases {
        let question = PatternTrie.question(view, destination)
        if keepsBelow(key, in: view, for: destination) { bits |= 1 << UInt8(question) }
      }
    }
    return bits
  }

  /// Whether a backup may include something below a directory: false only if the steps that match
  /// everything below exclude it and no later step can include anything again.
  private func keepsBelow(
    _ key: StateKey, in view: VerdictView, for destination: Destination
  ) -> Bool {
    var verdict = policy.starts[Int(key.kind)][view]
    var setters = LastSetters()
    var doubtful: [Int] = []
    for step in stepsBelow(key) {
      let operation = policy.operations[step]
      guard let assignment = operation.certain(view) else {
        doubtful.append(step)
        continue
      }
      assignment.apply(to: &verdict)
      setters.note(assignment.fields, step)
    }
    guard verdict.backup.mode(for: destination) == .never else { return true }
    let first = setters.first(of: verdict.backup, for: destination)
    let question = PatternTrie.question(view, destination)
    if key.nodes.contains(where: { policy.trie.nodes[Int($0)].lastKeeper[question] > first }) {
      return true
    }
    return (doubtful + policy.markerSteps).contains { step in
      step >= first && policy.operations[step].mayKeep(view, destination)
    }
  }

  /// Returns the steps that apply at a state and to everything below it.
  private func stepsBelow(_ key: StateKey) -> [Int] {
    var below = key
    below.rules = key.rules.filter { $0 & 1 == 1 }
    below.marks &= names.inherited
    return steps(below)
  }

  /// The last steps that set each value of the backup disposition, counted from 1.
  private struct LastSetters {
    private var standard = 0
    private var cloud = 0
    private var unencrypted = 0

    mutating func note(_ fields: Assignment.Fields, _ step: Int) {
      if fields.contains(.backupStandard) { standard = step + 1 }
      if fields.contains(.backupCloud) { cloud = step + 1 }
      if fields.contains(.backupUnencrypted) { unencrypted = step + 1 }
    }

    /// Returns the first step that a later step must override to include anything in a backup.
    func first(of backup: BackupDisposition, for destination: Destination) -> Int {
      var steps: [Int] = []
      if backup.standard == .never { steps.append(standard) }
      if destination.isCloud, backup.cloud == .never { steps.append(cloud) }
      if destination.isUnencrypted, backup.unencrypted == .never { steps.append(unencrypted) }
      return steps.min() ?? 0
    }
  }
}

extension Operation {
  /// Returns the values that the operation sets in a view for everything it matches, or nil if they
  /// depend on the entry.
  fileprivate func certain(_ view: VerdictView) -> Assignment? {
    switch authority {
    case .rule: condition.isEmpty ? (view == .keep ? keep : platform) : nil
    case .attribute:
      keep.fields.contains(.dataClass) ? nil : (view == .keep ? limitedKeep : limitedPlatform)
    case .file: nil
    }
  }

  /// Whether the operation can include an entry in a backup.
  fileprivate func mayKeep(_ view: VerdictView, _ destination: Destination) -> Bool {
    (view == .keep ? keep : platform).mayKeep(for: destination)
  }
}
