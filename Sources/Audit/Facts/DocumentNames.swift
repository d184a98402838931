internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// The extensions of file names that an app's documents have, in lower case: those of the types
/// that it edits or owns (Information Property List, CFBundleDocumentTypes).
struct DocumentNames {
  /// The extensions whose files are documents wherever they are.
  private(set) var extensions: Set<ByteString> = []
  /// The extensions of plain text, and of system formats that the app edits without owning them and
  /// that apps also use for caches: a file with one of them may or may not be a document.
  private(set) var ambiguous: Set<ByteString> = []

  /// Creates names for an app without documents.
  init() {}

  /// Finds the names of an app's documents. The extensions of a type identifier come from the
  /// declaration that applies on the device: the system's, an exported or an imported one. General
  /// types, such as `public.data`, have no extension.
  init(_ app: AppDeclarations, in tree: TypeTree) {
    for document in app.documentTypes where document.isOwn {
      // CFBundleTypeExtensions and CFBundleTypeMIMETypes are ignored if LSItemContentTypes is
      // present.
      for type in document.contentTypes {
        add(type, of: document, in: tree)
      }
      guard document.contentTypes.isEmpty else { continue }
      extensions.formUnion(document.extensions)
      for type in document.mimeTypes.flatMap({ tree.types(ofMIMEType: $0) }) {
        add(type, of: document, in: tree)
      }
    }
    // "*" means all files (CFBundleTypeExtensions).
    extensions.subtract(["*", ""])
    ambiguous.subtract(extensions)
  }

  private mutating func add(
    _ type: TypeIdentifier, of document: DocumentType, in tree: TypeTree
  ) {
    guard let declaration = tree.declaration(of: type) else { return }
    // A system format that is also common for files in caches.
    let isOfTheSystem = declaration.origin.app == nil
    // Plain text is a general type, even if an app claims to own it, but Markdown, for example, is
    // not.
    if type.key == "public.plain-text"
      || (document.rank != .owner && isOfTheSystem && Self.isUsualInCaches(type, in: tree))
    {
      ambiguous.formUnion(declaration.extensions)
    } else {
      extensions.formUnion(declaration.extensions)
    }
  }

  private static func isUsualInCaches(_ type: TypeIdentifier, in tree: TypeTree) -> Bool {
    usualInCaches.contains(type.key)
      || tree.ancestors(of: type).contains { usualInCaches.contains($0.key) }
  }

  /// The kinds of formats that apps of all kinds use for generated or downloaded data: previews
  /// (images, audio, video), archives, web pages and records.
  private static let usualInCaches: Set<ByteString> = [
    "public.image", "public.audiovisual-content", "public.archive", "public.xml", "public.json",
    "public.html", "public.css", "public.log", "com.apple.property-list",
    "com.netscape.javascript-source",
  ]

  /// Whether a file name ends in one of the extensions, ignoring ASCII case, and is therefore that
  /// of a document.
  func has(_ name: ByteString) -> Bool {
    guard let suffix = Self.suffix(of: name) else { return false }
    return extensions.contains(suffix)
  }

  /// Whether a file with a name may be a document, and must therefore not be deleted.
  func mayHave(_ name: ByteString) -> Bool {
    guard let suffix = Self.suffix(of: name) else { return false }
    return extensions.contains(suffix) || ambiguous.contains(suffix)
  }

  /// Returns the extension of a file name in lower case, or nil if there is none.
  private static func suffix(of name: ByteString) -> ByteString? {
    guard let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")), dot > name.bytes.startIndex else {
      return nil
    }
    return ByteString(name.bytes[(dot + 1)...]).lowercasedASCII
  }
}

extension DocumentType {
  /// Whether files of the type are the app's documents: it writes them (role Editor), or it is
  /// their primary creator (rank Owner). A viewer's files are copies of others.
  fileprivate var isOwn: Bool { role == "Editor" || rank == .owner }
}

extension DocumentNames {
  /// Returns the names of the documents of all apps that have some.
  ///
  /// - Parameters:
  ///   - lists: The usable lists of the bundles.
  ///   - types: The types of the system; read only if an app declares documents.
  static func all(
    _ lists: [(app: BundleIdentifier, list: PropertyList)], types: () throws -> TypeTable
  ) rethrows -> [BundleIdentifier: DocumentNames] {
    let declares = [
      "CFBundleDocumentTypes", "UTExportedTypeDeclarations", "UTImportedTypeDeclarations",
    ]
    let apps = lists.compactMap { app, list in
      declares.contains { list[$0] != nil } ? AppDeclarations(app, name: nil, info: list) : nil
    }
    let editors = apps.filter { $0.documentTypes.contains(where: \.isOwn) }
    if editors.isEmpty { return [:] }
    let tree = TypeTree(system: try types(), apps: apps.flatMap(\.types))
    var names: [BundleIdentifier: DocumentNames] = [:]
    for app in editors { names[app.app] = DocumentNames(app, in: tree) }
    return names
  }
}
