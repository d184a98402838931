package import SandboxModel
package import SystemIO

/// The apps that offer to open files of a type, in the order of their ranks.
package struct TypeHandlers: Sendable {
  /// The possible types of the file; the first is the most specific.
  package let type: TypeIdentifier
  /// The handlers in order: by rank, then the most specific first, then by identifier.
  package let handlers: [Handler]
  /// The apps that declare the type with the rank None, which must not open the file.
  package let excluded: [Handler]

  /// An app's offer to open a type.
  package struct Handler: Sendable, Hashable {
    package let app: BundleIdentifier
    package let appName: ByteString?
    package let rank: HandlerRank
    package let role: ByteString?
    /// The name of the document type.
    package let documentType: ByteString?
    package let match: Match
    /// The number of steps in the conformance tree from the file's type to the declared one; 0 for
    /// the type itself, nil for a match without types.
    package let distance: Int?
    /// The position in the Info.plist: `CFBundleDocumentTypes[0]`.
    package let key: String
  }

  /// The declaration that matches.
  package enum Match: Sendable, Hashable {
    /// A type in LSItemContentTypes to which the file's type conforms.
    case contentType(TypeIdentifier)
    /// An extension in CFBundleTypeExtensions, `*` for any.
    case filenameExtension(ByteString)
    /// A MIME type in CFBundleTypeMIMETypes.
    case mimeType(ByteString)
  }

  /// The handlers that share the best rank, if there are several: the platform does not define
  /// which of them is used.
  package var conflict: [Handler] {
    let best = handlers.prefix { $0.rank == handlers.first?.rank }
    return best.count > 1 ? Array(best) : []
  }

  /// The handler that opens the type, or nil if there is none or the choice is not defined.
  package var winner: Handler? { conflict.isEmpty ? handlers.first : nil }
}

extension TypeHandlers {
  /// Finds the handlers of a type among the apps of a device.
  ///
  /// - Parameter filenameExtension: The file's own extension, for declarations without types; by
  ///   default the extensions of the type.
  package init(
    of type: TypeIdentifier, filenameExtension: ByteString? = nil, in tree: TypeTree,
    _ apps: [AppDeclarations]
  ) {
    let search = Search(type: type, filenameExtension: filenameExtension, tree: tree)
    let all = apps.compactMap { search.handler($0) }.sorted(by: Self.precedes)
    self.init(
      type: type, handlers: all.filter { $0.rank != .never },
      excluded: all.filter { $0.rank == .never })
  }

  private static func precedes(_ left: Handler, _ right: Handler) -> Bool {
    if left.rank != right.rank { return left.rank < right.rank }
    let (near, far) = (left.distance ?? Int.max, right.distance ?? Int.max)
    return (near, left.app) < (far, right.app)
  }

  /// The search for one type.
  private struct Search {
    /// The number of steps from the type to each type to which it conforms, including itself.
    let distances: [ByteString: Int]
    let extensions: Set<ByteString>
    let mimeTypes: Set<ByteString>

    init(type: TypeIdentifier, filenameExtension: ByteString?, tree: TypeTree) {
      distances = tree.distances(from: type)
      let declaration = tree.declaration(of: type)
      extensions = Set(
        filenameExtension.map { [$0.lowercasedASCII] } ?? declaration?.extensions ?? [])
      mimeTypes = Set(declaration?.mimeTypes ?? [])
    }

    /// Returns the best offer of an app, or nil if it has none. An offer with the rank None counts
    /// only if there is no other.
    func handler(_ app: AppDeclarations) -> Handler? {
      app.documentTypes.compactMap { handler(app, $0) }.min(by: TypeHandlers.precedes)
    }

    private func handler(_ app: AppDeclarations, _ document: DocumentType) -> Handler? {
      guard let (match, distance) = match(document) else { return nil }
      return Handler(
        app: app.app, appName: app.name, rank: document.rank, role: document.role,
        documentType: document.name, match: match, distance: distance, key: document.key)
    }

    /// Extensions and MIME types count only in a declaration without types (Information Property
    /// List Key Reference, CFBundleTypeExtensions).
    private func match(_ document: DocumentType) -> (Match, Int?)? {
      guard document.contentTypes.isEmpty else {
        let found = document.contentTypes.compactMap { type in
          distances[type.key].map { (type: type, distance: $0) }
        }
        return found.min { $0.distance < $1.distance }.map { (.contentType($0.type), $0.distance) }
      }
      if let name = document.extensions.first(where: { extensions.contains($0) }) {
        return (.filenameExtension(name), nil)
      }
      if let name = document.mimeTypes.first(where: { mimeTypes.contains($0) }) {
        return (.mimeType(name), nil)
      }
      return document.extensions.contains("*") ? (.filenameExtension("*"), nil) : nil
    }
  }
}
