internal import Codecs
internal import SystemIO

/// A rule of an extension as a dictionary: the numbers of attachments of each kind that it accepts
/// (Information Property List, NSExtensionActivationRule).
package struct ActivationDictionary: Sendable, Hashable {
  /// The version: 2, or 1, the default.
  package let version: Int
  /// Whether NSExtensionActivationUsesStrictMatching is set.
  package let isStrict: Bool
  /// The maximum number of attachments of each kind that is accepted; `Int.max` for any number.
  let limits: [Kind: Int]
  /// The minimum and maximum number of attachments of all kinds, or nil.
  let minimum: Int?
  let maximum: Int?

  /// A kind of attachment that a key of the dictionary counts.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    case image = "NSExtensionActivationSupportsImageWithMaxCount"
    case movie = "NSExtensionActivationSupportsMovieWithMaxCount"
    case file = "NSExtensionActivationSupportsFileWithMaxCount"
    case text = "NSExtensionActivationSupportsText"
    case webURL = "NSExtensionActivationSupportsWebURLWithMaxCount"
    case webPage = "NSExtensionActivationSupportsWebPageWithMaxCount"

    /// The noun in messages.
    package var noun: String {
      switch self {
      case .image: "image"
      case .movie: "movie"
      case .file: "file"
      case .text: "text"
      case .webURL: "web URL"
      case .webPage: "web page"
      }
    }
  }

  static let minimumKey = "NSExtensionActivationSupportsAttachmentsWithMinCount"
  static let maximumKey = "NSExtensionActivationSupportsAttachmentsWithMaxCount"
  static let versionKey = "NSExtensionActivationDictionaryVersion"
  static let strictKey = "NSExtensionActivationUsesStrictMatching"

  /// Whether every attachment must be of an accepted kind: in version 1, and with strict matching.
  /// In version 2 one such attachment is enough.
  ///
  /// Apple's documentation of the keys does not mention the effect of the versions; the developers
  /// of Firefox for iOS report it (mozilla-mobile/firefox-ios, pull request 3203).
  package var needsAll: Bool { version < 2 || isStrict }
}

// MARK: - Reading

extension ActivationDictionary {
  /// Reads the dictionary. Values of wrong types are findings and are ignored.
  init(_ list: PropertyList, at key: String, _ reader: inout DeclarationReader) {
    var limits: [Kind: Int] = [:]
    for kind in Kind.allCases {
      guard let number = Self.number(kind.rawValue, of: list, at: key, &reader), number > 0 else {
        continue
      }
      limits[kind] = kind == .text ? Int.max : number
    }
    self.limits = limits
    minimum = Self.number(Self.minimumKey, of: list, at: key, &reader)
    maximum = Self.number(Self.maximumKey, of: list, at: key, &reader)
    isStrict = Self.number(Self.strictKey, of: list, at: key, &reader).map { $0 > 0 } ?? false
    let version = Self.number(Self.versionKey, of: list, at: key, &reader) ?? 1
    if !(1...2).contains(version) {
      reader.warn(
        "\(key).\(Self.versionKey)", "the version \(version) is unknown; 1 and 2 are known")
    }
    self.version = version >= 2 ? 2 : 1
    let known = Set(
      Kind.allCases.map(\.rawValue)
        + [Self.minimumKey, Self.maximumKey, Self.versionKey, Self.strictKey])
    for member in (list.dictionaryValue ?? []).prefix(DeclarationReader.elementLimit)
    where !known.contains(member.key) {
      reader.warn(key, "the key '\(ByteString(member.key))' is unknown")
    }
  }

  /// Returns a number of a dictionary, or nil. A Boolean is 0 or 1, and a text of digits is a
  /// number, as the platform reads them.
  private static func number(
    _ name: String, of list: PropertyList, at key: String, _ reader: inout DeclarationReader
  ) -> Int? {
    guard let value = list[name] else { return nil }
    switch value {
    case .bool(let value): return value ? 1 : 0
    case .integer(let number) where number >= 0: return Int(clamping: number)
    case .unsigned: return Int.max
    case .real(let number) where number >= 0 && number < 1e15: return Int(number)
    case .string(let text):
      guard (1...15).contains(text.utf8.count), let number = Int(text), number >= 0 else { break }
      reader.note("\(key).\(name)", "it is a string, not a number")
      return number
    default: break
    }
    reader.warn("\(key).\(name)", "it is of the type \(value.kind), not a number of 0 or more")
    return nil
  }
}

// MARK: - Evaluating

extension ActivationDictionary {
  /// The number of attachments of a kind, and the limit.
  package struct Count: Sendable, Hashable {
    /// The key of the dictionary.
    package let key: String
    package let count: Int
    /// The limit, or nil for any number.
    package let limit: Int?
    /// Whether the number is permitted.
    package let isPermitted: Bool
  }

  /// The result for attachments.
  struct Result {
    var counts: [Count] = []
    /// The reasons against the extension; none if it is offered.
    var faults: [String] = []
    /// The numbers of the attachments that are not of an accepted kind.
    var unmatched: [Int] = []
  }

  /// Evaluates the rule.
  func result(for attachments: SharedAttachments, in tree: TypeTree) -> Result {
    var result = Result()
    let kinds = attachments.all.map { Self.kinds(of: $0, in: tree) }
    for kind in Kind.allCases {
      guard let limit = limits[kind] else { continue }
      let count = kinds.count { $0.contains(kind) }
      result.add(
        Count(
          key: kind.rawValue, count: count, limit: limit == Int.max ? nil : limit,
          isPermitted: count <= limit), of: kind.noun, limit: "at most \(limit)")
    }
    if let maximum {
      result.add(
        Count(
          key: Self.maximumKey, count: kinds.count, limit: maximum,
          isPermitted: kinds.count <= maximum), of: "attachment", limit: "at most \(maximum)")
    }
    if let minimum {
      result.add(
        Count(
          key: Self.minimumKey, count: kinds.count, limit: minimum,
          isPermitted: kinds.count >= minimum), of: "attachment", limit: "at least \(minimum)")
    }
    addUnmatched(of: kinds, attachments, to: &result)
    return result
  }

  private func addUnmatched(
    of kinds: [Set<Kind>], _ attachments: SharedAttachments, to result: inout Result
  ) {
    if limits.isEmpty {
      // A rule that limits only the number of all attachments accepts any kind.
      if minimum == nil, maximum == nil { result.faults.append("the rule accepts no kind") }
      return
    }
    result.unmatched = kinds.indices.filter { kinds[$0].isDisjoint(with: limits.keys) }
    if needsAll {
      result.faults += result.unmatched.map { number in
        let attachment = attachments.all[number]
        return "\(attachment.shown) is of no accepted kind, and each must be"
      }
    } else if result.unmatched.count == kinds.count {
      result.faults.append("no attachment is of an accepted kind")
    }
  }

  /// Returns the kinds that an attachment counts as. A file counts as a file and, depending on its
  /// type, as an image, a movie or a text.
  private static func kinds(of attachment: SharedAttachment, in tree: TypeTree) -> Set<Kind> {
    var kinds: Set<Kind> = []
    for type in attachment.types where type != SharedAttachment.fileURL {
      if tree.conforms(type, to: image) { kinds.insert(.image) }
      if tree.conforms(type, to: movie) { kinds.insert(.movie) }
      if tree.conforms(type, to: text) { kinds.insert(.text) }
    }
    if attachment.isFile { kinds.insert(.file) }
    if attachment.isOfWeb { kinds.insert(.webURL) }
    if attachment.kind == .page { kinds.insert(.webPage) }
    return kinds
  }

  private static let image = TypeIdentifier(known: "public.image")
  private static let movie = TypeIdentifier(known: "public.movie")
  private static let text = TypeIdentifier(known: "public.text")
}

extension ActivationDictionary.Result {
  fileprivate mutating func add(
    _ count: ActivationDictionary.Count, of noun: String, limit: String
  ) {
    counts.append(count)
    guard !count.isPermitted else { return }
    let plural = count.count == 1 ? noun : noun + "s"
    faults.append("\(count.count) \(plural), and \(limit) is accepted (\(count.key))")
  }
}
