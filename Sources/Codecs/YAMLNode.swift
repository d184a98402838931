/// A node of a YAML document, with its position.
package struct YAMLNode: Sendable, Hashable {
  /// The content of the node.
  package let content: Content
  /// The position of the node.
  package let mark: Mark

  /// Creates a node.
  package init(_ content: Content, at mark: Mark) {
    self.content = content
    self.mark = mark
  }

  /// The content of a node.
  package enum Content: Sendable, Hashable {
    case scalar(Scalar)
    case sequence([YAMLNode])
    case mapping([Entry])
  }

  /// A scalar as written, not yet resolved to a type.
  package struct Scalar: Sendable, Hashable {
    /// The text without quotes, with escapes and folding resolved.
    package let text: String
    /// The style; only plain scalars can be of another type than string.
    package let style: Style

    /// Creates a scalar.
    package init(_ text: String, style: Style) {
      self.text = text
      self.style = style
    }
  }

  /// The style of a scalar.
  package enum Style: Sendable, Hashable {
    /// Without quotes.
    case plain
    /// In single or double quotes.
    case quoted
    /// As a block, with `|` or `>`.
    case block
  }

  /// A key and its value in a mapping.
  package struct Entry: Sendable, Hashable {
    /// The key, a scalar.
    package let key: Scalar
    /// The position of the key.
    package let keyMark: Mark
    /// The value.
    package let value: YAMLNode

    /// Creates an entry.
    package init(key: Scalar, keyMark: Mark, value: YAMLNode) {
      self.key = key
      self.keyMark = keyMark
      self.value = value
    }

    /// The text of the key.
    package var name: String { key.text }
  }
}

extension YAMLNode {
  /// The scalar, or nil.
  package var scalar: Scalar? { if case .scalar(let scalar) = content { scalar } else { nil } }

  /// The elements, or nil if this is not a sequence.
  package var sequence: [YAMLNode]? {
    if case .sequence(let elements) = content { elements } else { nil }
  }

  /// The entries in order, or nil if this is not a mapping.
  package var mapping: [Entry]? { if case .mapping(let entries) = content { entries } else { nil } }

  /// The value of the named key, or nil if it does not exist or this is not a mapping.
  package subscript(_ name: String) -> YAMLNode? {
    mapping?.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The kind of the node in messages: "a mapping", "a list", "text", "a number".
  package var kindName: String {
    switch content {
    case .sequence: "a list"
    case .mapping: "a mapping"
    case .scalar(let scalar):
      switch scalar.resolved {
      case .null: "nothing"
      case .bool: "true or false"
      case .integer, .double: "a number"
      case .string: "text"
      }
    }
  }
}
