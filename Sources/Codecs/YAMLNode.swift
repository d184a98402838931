/// A node of a YAML document, with its position.
public struct YAMLNode: Sendable, Hashable {
  /// The content of the node.
  public let content: Content
  /// The position of the node.
  public let mark: Mark

  /// Creates a node.
  public init(_ content: Content, at mark: Mark) {
    self.content = content
    self.mark = mark
  }

  /// The content of a node.
  public enum Content: Sendable, Hashable {
    case scalar(Scalar)
    case sequence([YAMLNode])
    case mapping([Entry])
  }

  /// A scalar as written, not yet resolved to a type.
  public struct Scalar: Sendable, Hashable {
    /// The text without quotes, with escapes and folding resolved.
    public let text: String
    /// The style; only plain scalars can be of another type than string.
    public let style: Style

    /// Creates a scalar.
    public init(_ text: String, style: Style) {
      self.text = text
      self.style = style
    }
  }

  /// The style of a scalar.
  public enum Style: Sendable, Hashable {
    /// Without quotes.
    case plain
    /// In single or double quotes.
    case quoted
    /// As a block, with `|` or `>`.
    case block
  }

  /// A key and its value in a mapping.
  public struct Entry: Sendable, Hashable {
    /// The key, a scalar.
    public let key: Scalar
    /// The position of the key.
    public let keyMark: Mark
    /// The value.
    public let value: YAMLNode

    /// Creates an entry.
    public init(key: Scalar, keyMark: Mark, value: YAMLNode) {
      self.key = key
      self.keyMark = keyMark
      self.value = value
    }

    /// The text of the key.
    public var name: String { key.text }
  }
}

extension YAMLNode {
  /// The scalar, or nil.
  public var scalar: Scalar? { if case .scalar(let scalar) = content { scalar } else { nil } }

  /// The elements, or nil if this is not a sequence.
  public var sequence: [YAMLNode]? {
    if case .sequence(let elements) = content { elements } else { nil }
  }

  /// The entries in order, or nil if this is not a mapping.
  public var mapping: [Entry]? { if case .mapping(let entries) = content { entries } else { nil } }

  /// The value of the named key, or nil if it does not exist or this is not a mapping.
  public subscript(_ name: String) -> YAMLNode? {
    mapping?.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The kind of the node in messages: "a mapping", "a list", "text", "a number".
  public var kindName: String {
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
