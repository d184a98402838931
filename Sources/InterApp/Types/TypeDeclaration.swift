package import SandboxModel
package import SystemIO

/// A declaration of a uniform type: its identifier, what it conforms to, and its tags.
package struct TypeDeclaration: Sendable, Hashable {
  package let identifier: TypeIdentifier
  /// The types to which it conforms directly.
  package let conformsTo: [TypeIdentifier]
  /// The filename extensions in lower case, without a dot, the preferred one first.
  package let extensions: [ByteString]
  /// The MIME types in lower case, the preferred one first.
  package let mimeTypes: [ByteString]
  package let origin: Origin

  /// Creates a declaration.
  package init(
    _ identifier: TypeIdentifier, conformsTo: [TypeIdentifier] = [], extensions: [ByteString] = [],
    mimeTypes: [ByteString] = [], origin: Origin
  ) {
    self.identifier = identifier
    self.conformsTo = conformsTo
    self.extensions = extensions
    self.mimeTypes = mimeTypes
    self.origin = origin
  }

  /// The source of a declaration. An exported declaration takes precedence over an imported one
  /// (Uniform Type Identifiers Overview, "Declaring New Uniform Type Identifiers").
  package enum Origin: Sendable, Hashable {
    case system
    /// An app that owns the type declares it.
    case exported(BundleIdentifier)
    /// An app that uses a type of others declares it.
    case imported(BundleIdentifier)
    /// `policies/interapp/types.yaml` names a format for which no system declares a type.
    case assigned

    /// The name in output.
    package var name: String {
      switch self {
      case .system: "system"
      case .exported: "exported"
      case .imported: "imported"
      case .assigned: "assigned"
      }
    }

    /// The app that declares the type, or nil.
    package var app: BundleIdentifier? {
      switch self {
      case .exported(let app), .imported(let app): app
      case .system, .assigned: nil
      }
    }

    /// The order of precedence, the strongest first.
    var rank: Int {
      switch self {
      case .system: 0
      case .exported: 1
      case .imported: 2
      case .assigned: 3
      }
    }
  }
}
