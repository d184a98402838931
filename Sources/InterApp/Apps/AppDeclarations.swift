package import Codecs
package import SandboxModel
package import SystemIO

/// The declarations in an app's Info.plist that concern other apps: its document types, URL schemes
/// and uniform types, and the keys that decide how it is launched.
package struct AppDeclarations: Sendable {
  package let app: BundleIdentifier
  /// The display name, if the bundle has one.
  package let name: ByteString?
  package let documentTypes: [DocumentType]
  package let urlTypes: [URLType]
  /// The exported and imported types, in this order.
  package let types: [TypeDeclaration]
  package let launch: LaunchKeys
  /// The values that could not be used, and other mistakes.
  package private(set) var findings: [DeclarationFinding]

  /// Reads the declarations. Never fails: mistakes are in `findings`.
  package init(_ app: BundleIdentifier, name: ByteString?, info list: PropertyList) {
    var reader = DeclarationReader(app)
    self.app = app
    self.name = name
    documentTypes = Self.documentTypes(list, &reader)
    urlTypes = Self.urlTypes(list, &reader)
    types =
      Self.types("UTExportedTypeDeclarations", of: list, as: .exported(app), reader: &reader)
      + Self.types("UTImportedTypeDeclarations", of: list, as: .imported(app), reader: &reader)
    launch = LaunchKeys(list, &reader)
    findings = reader.findings
  }

  /// Adds a finding from a file beside the Info.plist.
  mutating func add(_ finding: DeclarationFinding) { findings.append(finding) }

  private static func documentTypes(
    _ list: PropertyList, _ reader: inout DeclarationReader
  ) -> [DocumentType] {
    reader.dictionaries("CFBundleDocumentTypes", of: list).map { key, value in
      let type = DocumentType(
        name: reader.text("CFBundleTypeName", of: value, at: key),
        rank: rank(of: value, at: key, &reader),
        role: reader.text("CFBundleTypeRole", of: value, at: key),
        contentTypes: reader.identifiers("LSItemContentTypes", of: value, at: key),
        extensions: reader.texts("CFBundleTypeExtensions", of: value, at: key)
          .map(\.lowercasedASCII),
        mimeTypes: reader.texts("CFBundleTypeMIMETypes", of: value, at: key).map(\.lowercasedASCII),
        key: key)
      if type.name == nil { reader.warn(key, "it has no CFBundleTypeName, which is required") }
      if type.name != nil, !type.isComplete {
        reader.warn(key, "it has no type in LSItemContentTypes, which is required")
      }
      return type
    }
  }

  private static func rank(
    of value: PropertyList, at key: String, _ reader: inout DeclarationReader
  ) -> HandlerRank {
    guard let text = reader.text("LSHandlerRank", of: value, at: key) else { return .standard }
    if let rank = text.utf8.flatMap(HandlerRank.init(rawValue:)) { return rank }
    let known = HandlerRank.allCases.map(\.rawValue).joined(separator: ", ")
    reader.warn("\(key).LSHandlerRank", "'\(text)' is none of \(known); Default applies")
    return .standard
  }

  private static func urlTypes(
    _ list: PropertyList, _ reader: inout DeclarationReader
  ) -> [URLType] {
    reader.dictionaries("CFBundleURLTypes", of: list).map { key, value in
      let schemes = reader.texts("CFBundleURLSchemes", of: value, at: key)
      let place = "\(key).CFBundleURLSchemes"
      if value["CFBundleURLSchemes"] == nil { reader.warn(key, "it has no CFBundleURLSchemes") }
      return URLType(
        name: reader.text("CFBundleURLName", of: value, at: key),
        role: reader.text("CFBundleTypeRole", of: value, at: key),
        schemes: schemes.compactMap { scheme in
          guard let fault = URLText.fault(ofScheme: scheme) else { return scheme.lowercasedASCII }
          reader.warn(place, "'\(scheme)' is not a URL scheme and is not registered: \(fault)")
          return nil
        },
        key: key)
    }
  }

  private static func types(
    _ name: String, of list: PropertyList, as origin: TypeDeclaration.Origin,
    reader: inout DeclarationReader
  ) -> [TypeDeclaration] {
    reader.dictionaries(name, of: list).compactMap { key, value in
      guard let text = reader.texts("UTTypeIdentifier", of: value, at: key).first else {
        if value["UTTypeIdentifier"] == nil { reader.warn(key, "it has no UTTypeIdentifier") }
        return nil
      }
      guard let identifier = reader.identifier(text, at: "\(key).UTTypeIdentifier") else {
        return nil
      }
      let tags = value["UTTypeTagSpecification"] ?? .dictionary([])
      let place = "\(key).UTTypeTagSpecification"
      if tags.dictionaryValue == nil {
        reader.warn(place, "it is of the type \(tags.kind), not a dictionary")
      }
      return TypeDeclaration(
        identifier, conformsTo: reader.identifiers("UTTypeConformsTo", of: value, at: key),
        extensions: reader.texts("public.filename-extension", of: tags, at: place)
          .map(\.lowercasedASCII),
        mimeTypes: reader.texts("public.mime-type", of: tags, at: place).map(\.lowercasedASCII),
        origin: origin)
    }
  }
}
