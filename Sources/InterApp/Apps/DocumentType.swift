package import SystemIO

/// A document type that an app declares in CFBundleDocumentTypes (Information Property List Key
/// Reference, Core Foundation Keys).
package struct DocumentType: Sendable, Hashable {
  /// The name, or nil if it is missing.
  package let name: ByteString?
  package let rank: HandlerRank
  package let role: ByteString?
  /// The types (LSItemContentTypes).
  package let contentTypes: [TypeIdentifier]
  /// The filename extensions in lower case, `*` for any. Used only without `contentTypes`.
  package let extensions: [ByteString]
  /// The MIME types in lower case. Used only without `contentTypes`.
  package let mimeTypes: [ByteString]
  /// The position in the Info.plist: `CFBundleDocumentTypes[0]`.
  package let key: String

  /// Whether it has a name and at least one type, as the platform requires.
  package var isComplete: Bool {
    name != nil && !(contentTypes.isEmpty && extensions.isEmpty && mimeTypes.isEmpty)
  }
}

/// The rank with which an app offers to open files of a type (LSHandlerRank).
package enum HandlerRank: String, Sendable, Hashable, CaseIterable, Comparable {
  /// The app is the primary creator of such files.
  case owner = "Owner"
  /// The app opens such files; the default rank.
  case standard = "Default"
  /// The app is a secondary viewer.
  case alternate = "Alternate"
  /// The app must not be used to open such files.
  case never = "None"

  /// Orders by precedence, the strongest first.
  package static func < (left: Self, right: Self) -> Bool { left.order < right.order }

  private var order: Int { Self.allCases.firstIndex(of: self) ?? Self.allCases.count }
}

/// URL schemes that an app declares in CFBundleURLTypes.
package struct URLType: Sendable, Hashable {
  /// The abstract name (CFBundleURLName), or nil if it is missing or empty.
  package let name: ByteString?
  package let role: ByteString?
  /// The schemes in lower case.
  package let schemes: [ByteString]
  /// The position in the Info.plist: `CFBundleURLTypes[0]`.
  package let key: String
}
