extension Classifier {
  /// The state of an entry that bears marks; with those that a directory hands down, the state of all
  /// that lies below it, too.
  ///
  /// A mark that is a file marks the directory that holds it, with `inherit` and all below; the
  /// directory's state must be marked before anything descends from it.
  public mutating func marking(_ state: State, _ marks: MarkSet) -> State {
    var key = keys[Int(state.index)]
    let added = marks.rawValue & names.marksByKind[Int(key.kind)]
    guard key.marks | added != key.marks else { return state }
    if let known = marked.find(state.index, added) { return State(index: known) }
    key.marks |= added
    let target = intern(key)
    marked.insert(state.index, added, target: target)
    return State(index: target)
  }

  /// The marks that count at a state: its own and those that directories above it handed down.
  public func marks(_ state: State) -> MarkSet { MarkSet(rawValue: keys[Int(state.index)].marks) }

  /// The marks that an extended attribute of this name, as Linux has it, may be. What its value must
  /// be is for the caller to see: `Marker.accepts`.
  public func attributeMarks(_ name: Span<UInt8>) -> MarkSet {
    for (attribute, marks) in names.attributes where name.isEqual(to: attribute.span) {
      return marks
    }
    return []
  }

  /// The marks that a file of this name may be, to its directory. What the file must begin with is for
  /// the caller to see: `Marker.accepts`.
  public func fileMarks(_ name: Span<UInt8>) -> MarkSet {
    guard names.fileLengths >> UInt64(min(name.count, 63)) & 1 == 1 else { return [] }
    for (file, marks) in names.files where name.isEqual(to: file.span) { return marks }
    return []
  }

  /// The names of which rules ask whether a directory holds them; mostly none.
  public func siblingNames(_ state: State) -> SiblingSet {
    SiblingSet(rawValue: records[Int(state.index)].siblings)
  }

  /// The bit of a name among those that rules ask for; none for any other name.
  public func sibling(_ name: Span<UInt8>) -> SiblingSet {
    guard names.siblingLengths >> UInt64(min(name.count, 63)) & 1 == 1 else { return [] }
    for (index, sibling) in policy.siblingNames.enumerated() where name.isEqual(to: sibling.span) {
      return SiblingSet(sibling: index)
    }
    return []
  }

  /// The state of a directory that is known to hold names that rules ask for; its entries descend from
  /// it, the directory itself is judged as before.
  public mutating func holding(_ state: State, _ siblings: SiblingSet) -> State {
    let present = siblings.rawValue & records[Int(state.index)].siblings
    guard present != 0 else { return state }
    if let known = held.find(state.index, present) { return State(index: known) }
    var key = keys[Int(state.index)]
    key.siblings = present
    let target = intern(key)
    held.insert(state.index, present, target: target)
    return State(index: target)
  }

  /// Whether something below a directory may be kept in a backup: whether a left-out directory must be
  /// entered all the same. A no is certain.
  public func canReachKeep(
    _ state: State, for destination: Destination = Destination(), view: VerdictView = .keep
  ) -> Bool {
    let question = PatternTrie.question(view, destination)
    return records[Int(state.index)].keepsBelow >> UInt8(question) & 1 == 1
  }
}
