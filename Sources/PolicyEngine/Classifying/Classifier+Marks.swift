extension Classifier {
  /// Returns the state of an entry that carries marks. Inherited marks also apply to everything
  /// below the entry.
  ///
  /// A marker file marks the directory that contains it and, with `inherit`, everything below. Mark
  /// the directory's state before descending from it.
  package mutating func marking(_ state: State, _ marks: MarkSet) -> State {
    var key = keys[Int(state.index)]
    let added = marks.rawValue & names.marksByKind[Int(key.kind)]
    guard key.marks | added != key.marks else { return state }
    if let known = marked.find(state.index, added) { return State(index: known) }
    key.marks |= added
    let target = intern(key)
    marked.insert(state.index, added, target: target)
    return State(index: target)
  }

  /// Returns the marks in effect at a state, including those inherited from parent directories.
  package func marks(_ state: State) -> MarkSet { MarkSet(rawValue: keys[Int(state.index)].marks) }

  /// Returns the marks that an extended attribute with this Linux name can stand for. The caller
  /// checks the value with `Marker.accepts`.
  package func attributeMarks(_ name: Span<UInt8>) -> MarkSet {
    for (attribute, marks) in names.attributes where name.isEqual(to: attribute.span) {
      return marks
    }
    return []
  }

  /// Returns the marks that a file with this name can set on its directory. The caller checks the
  /// file's first bytes with `Marker.accepts`.
  package func fileMarks(_ name: Span<UInt8>) -> MarkSet {
    guard names.fileLengths >> UInt64(min(name.count, 63)) & 1 == 1 else { return [] }
    for (file, marks) in names.files where name.isEqual(to: file.span) { return marks }
    return []
  }

  /// Returns the sibling names that rules test for in this directory; usually empty.
  package func siblingNames(_ state: State) -> SiblingSet {
    SiblingSet(rawValue: records[Int(state.index)].siblings)
  }

  /// Returns the bit of a sibling name, or the empty set if no rule tests for the name.
  package func sibling(_ name: Span<UInt8>) -> SiblingSet {
    guard names.siblingLengths >> UInt64(min(name.count, 63)) & 1 == 1 else { return [] }
    for (index, sibling) in policy.siblingNames.enumerated() where name.isEqual(to: sibling.span) {
      return SiblingSet(sibling: index)
    }
    return []
  }

  /// Returns the state of a directory that contains sibling names. It affects only the directory's
  /// entries, not the verdicts on the directory itself.
  package mutating func holding(_ state: State, _ siblings: SiblingSet) -> State {
    let present = siblings.rawValue & records[Int(state.index)].siblings
    guard present != 0 else { return state }
    if let known = held.find(state.index, present) { return State(index: known) }
    var key = keys[Int(state.index)]
    key.siblings = present
    let target = intern(key)
    held.insert(state.index, present, target: target)
    return State(index: target)
  }

  /// Whether a backup may include something below a directory, so that an excluded directory must
  /// be scanned. False is definite.
  package func canReachKeep(
    _ state: State, for destination: Destination = Destination(), view: VerdictView = .keep
  ) -> Bool {
    let question = PatternTrie.question(view, destination)
    return records[Int(state.index)].keepsBelow >> UInt8(question) & 1 == 1
  }
}
