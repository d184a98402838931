package import Codecs

/// Checks the nodes of a file against a grammar and collects every mistake.
package struct GrammarCheck {
  private let file: String
  /// The mistakes, in the order in which they were found.
  package private(set) var issues: [PolicyIssue] = []

  /// Creates a check of a file with this name in messages.
  package init(file: String) { self.file = file }

  /// Checks a value and everything in it against a shape; `name` is the value's key.
  package mutating func check(_ node: YAMLNode, against shape: Shape, named name: String) {
    switch shape {
    case .list(let element):
      guard let elements = node.sequence else { return refuse(node, as: shape, named: name) }
      for child in elements { check(child, against: element, named: name) }
    case .oneOrMany(let element):
      if let elements = node.sequence {
        if elements.isEmpty { refuse(node, as: shape, named: name) }
        for child in elements { check(child, against: element, named: name) }
      } else {
        check(node, against: element, named: name)
      }
    case .record(let record):
      guard let entries = node.mapping else { return refuse(node, as: shape, named: name) }
      check(node, entries: entries, against: record)
    case .keyed(let keys, let value):
      guard let entries = node.mapping else { return refuse(node, as: shape, named: name) }
      for entry in entries { check(entry, keys: keys, against: value, in: name) }
    case .either(let first, let second):
      if node.mapping != nil || node.sequence != nil {
        if second.accepts(node) {
          check(node, against: second, named: name)
        } else {
          refuse(node, as: shape, named: name)
        }
      } else if !first.acceptsScalar(node) {
        refuse(node, as: shape, named: name)
      }
    default:
      if !shape.acceptsScalar(node) { refuse(node, as: shape, named: name) }
    }
  }

  private mutating func check(_ node: YAMLNode, entries: [YAMLNode.Entry], against record: Record) {
    for entry in entries {
      if let key = record.key(entry.name) {
        check(entry.value, against: key.shape, named: key.name)
      } else {
        refuseKey(entry, record.keys.map(\.name), in: record.title)
      }
    }
    let present = entries.map(\.name)
    for key in record.keys where key.isRequired && !present.contains(key.name) {
      add(
        .key, at: node.mark, "\(record.title) has no '\(key.name)'",
        expected: "\(key.name): \(key.shape.expectation)")
    }
    if !record.needsAnyOf.isEmpty, !record.needsAnyOf.contains(where: present.contains) {
      let known = entries.contains { record.key($0.name) == nil }
      if !known {
        add(
          .key, at: node.mark, "\(record.title) sets nothing",
          expected: "one of \(record.needsAnyOf.joined(separator: ", "))")
      }
    }
    let chosen = entries.filter { record.needsOneOf.contains($0.name) }
    // A reported unknown key is probably a misspelling of one of them.
    let isMisspelt = chosen.isEmpty && entries.contains { record.key($0.name) == nil }
    if !record.needsOneOf.isEmpty, chosen.count != 1, !isMisspelt {
      let words = (chosen.isEmpty ? record.needsOneOf : chosen.map(\.name)).map { "'\($0)'" }
      add(
        .key, at: chosen.last?.keyMark ?? node.mark,
        chosen.isEmpty
          ? "\(record.title) has none of \(words.joined(separator: ", "))"
          : "\(record.title) has both \(words.joined(separator: " and "))",
        expected: "one of them")
    }
  }

  private mutating func check(
    _ entry: YAMLNode.Entry, keys: Shape.Keys, against value: Shape, in name: String
  ) {
    if case .words(let words) = keys, !words.contains(entry.name) {
      refuseKey(entry, words, in: name)
    } else {
      check(entry.value, against: value, named: entry.name)
    }
  }

  private mutating func refuseKey(_ entry: YAMLNode.Entry, _ known: [String], in context: String) {
    let guess = Resemblance.nearest(to: entry.name, among: known)
    let hint = guess.map { "'\($0)'" } ?? "one of \(known.joined(separator: ", "))"
    add(.key, at: entry.keyMark, "unknown key '\(entry.name)' in \(context)", expected: hint)
  }

  private mutating func refuse(_ node: YAMLNode, as shape: Shape, named name: String) {
    let found = node.scalar.map { $0.text.isEmpty ? "nothing" : "'\($0.text)'" } ?? node.kindName
    add(.value, at: node.mark, "'\(name)' is \(found)", expected: shape.expectation)
  }

  private mutating func add(
    _ kind: PolicyIssue.Kind, at mark: Mark, _ problem: String, expected: String
  ) {
    issues.append(
      PolicyIssue(kind, at: PolicyLocation(file, mark), problem, expected: expected))
  }
}

extension Shape {
  /// Whether a list or mapping can have this shape; its elements are not checked.
  fileprivate func accepts(_ node: YAMLNode) -> Bool {
    switch self {
    case .record, .keyed: node.mapping != nil
    case .list, .oneOrMany: node.sequence != nil
    default: false
    }
  }

  /// Whether a scalar can have this shape.
  fileprivate func acceptsScalar(_ node: YAMLNode) -> Bool {
    guard let text = node.text, !node.isNull || isText else { return false }
    return switch self {
    case .text(let mayBeEmpty): !node.isNull && (mayBeEmpty || !text.isEmpty)
    case .identifier: Self.isIdentifier(text)
    case .pattern: true
    case .bool: node.bool != nil
    case .integer(let range): node.integer.map { range.contains(Int($0)) } ?? false
    case .size: Quantity.bytes(text) != nil
    case .duration: Quantity.seconds(text) != nil
    case .version: OSVersion(text) != nil
    case .versions: OSVersion.Range(text) != nil
    case .choice(let words): words.contains(text)
    default: false
    }
  }

  private var isText: Bool { if case .text = self { true } else { false } }

  package static func isIdentifier(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
          UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
