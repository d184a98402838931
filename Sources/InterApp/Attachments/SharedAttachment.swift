package import SystemIO

/// An item that a user shares, as an extension receives it: an attachment (NSItemProvider) with the
/// types in which it is available.
package struct SharedAttachment: Sendable, Hashable {
  /// The text, the URL (without its password) or the file's path, as given.
  package let name: ByteString
  package let kind: Kind
  /// The registered type identifiers, the content's own type first.
  package let types: [TypeIdentifier]

  package enum Kind: String, Sendable, Hashable {
    /// A file, which is passed by its URL.
    case file
    case text
    case url
    /// A page that is open in a browser.
    case page
  }

  /// A file of a type. An item provider of a file registers the file's type and its URL
  /// (NSItemProvider, init(contentsOf:)).
  package static func file(_ path: ByteString, of type: TypeIdentifier) -> SharedAttachment {
    SharedAttachment(name: path, kind: .file, types: [type, fileURL])
  }

  /// A text.
  package static func text(_ text: ByteString) -> SharedAttachment {
    SharedAttachment(name: text, kind: .text, types: [plainText])
  }

  /// A URL that does not refer to a file, or that refers to a file with unknown content.
  package static func url(_ url: URLText) -> SharedAttachment {
    let isFile = url.scheme.lowercasedASCII == "file"
    return SharedAttachment(
      name: url.withoutPassword, kind: .url, types: [isFile ? fileURL : webURL])
  }

  /// A web page: its URL, and the page itself, which an extension with
  /// NSExtensionJavaScriptPreprocessingFile can examine (App Extension Programming Guide,
  /// "Accessing a Webpage").
  package static func page(_ url: URLText) -> SharedAttachment {
    SharedAttachment(name: url.withoutPassword, kind: .page, types: [webURL, webPage])
  }

  /// The kind and name in messages: `the file 'photo.png'`.
  package var shown: String {
    let noun =
      switch kind {
      case .file: "file"
      case .text: "text"
      case .url: "URL"
      case .page: "web page"
      }
    let name = kind == .file ? self.name.lastComponent ?? self.name : self.name
    let limit = 60
    let excerpt =
      name.count > limit ? ByteString(name.bytes.prefix(limit)).description + "…" : "\(name)"
    return "the \(noun) '\(excerpt)'"
  }

  /// Whether it is a web URL. NSExtensionActivationSupportsWebURLWithMaxCount counts "HTTP URLs".
  var isOfWeb: Bool {
    guard kind == .url || kind == .page else { return false }
    let scheme = ByteString(name.bytes.prefix { $0 != UInt8(ascii: ":") }).lowercasedASCII
    return scheme == "http" || scheme == "https"
  }

  /// Whether the content is a file.
  var isFile: Bool { types.contains(Self.fileURL) }

  static let plainText = TypeIdentifier(known: "public.plain-text")
  static let webURL = TypeIdentifier(known: "public.url")
  static let fileURL = TypeIdentifier(known: "public.file-url")
  static let webPage = TypeIdentifier(known: "com.apple.active-webpage")
}

/// The attachments of one share. The system passes them in one extension item (NSExtensionItem).
package struct SharedAttachments: Sendable, Hashable {
  package let all: [SharedAttachment]

  /// The maximum number of attachments, which limits the work of evaluating rules.
  package static let limit = 1000

  /// Creates the attachments; those after the first `limit` are ignored.
  package init(_ all: [SharedAttachment]) { self.all = Array(all.prefix(Self.limit)) }
}
