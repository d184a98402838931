import BuiltinPolicies
import Codecs
import InterApp
import SandboxModel
import SystemIO
import Testing

/// The system's data, and apps that tests declare.
enum InterAppFixture {
  static func types() throws -> TypeTable {
    try TypeTable(reading: BuiltinPolicies.interAppTypes, name: "types.yaml")
  }

  static func schemes() throws -> SystemSchemes {
    try SystemSchemes(reading: BuiltinPolicies.interAppSchemes, name: "schemes.yaml")
  }

  /// Returns the model of a device with apps, for a version of the system.
  static func model(_ apps: [AppDeclarations], version: ByteString? = nil) throws -> InterAppModel {
    InterAppModel(
      AppCatalog(apps: apps), types: try types(), schemes: try schemes(),
      version: version.flatMap { SystemVersion($0) })
  }

  /// Returns an app with the members of an Info.plist.
  static func app(
    _ identifier: ByteString, _ members: [(String, PropertyList)] = []
  ) throws -> AppDeclarations {
    AppDeclarations(
      try #require(BundleIdentifier(identifier)), name: nil, info: .of(members))
  }

  /// Returns an app that opens types with a rank.
  static func opener(
    _ identifier: ByteString, _ types: [String], rank: String? = nil
  ) throws -> AppDeclarations {
    let rank = rank.map { [("LSHandlerRank", PropertyList.string($0))] } ?? []
    let document = PropertyList.of(
      [("CFBundleTypeName", .string("Document")), ("LSItemContentTypes", .strings(types))] + rank)
    return try app(identifier, [("CFBundleDocumentTypes", .array([document]))])
  }

  /// Returns an app with URL schemes.
  static func scheme(
    _ identifier: ByteString, _ schemes: [String], name: String? = nil,
    more: [(String, PropertyList)] = []
  ) throws -> AppDeclarations {
    let name = name ?? String(decoding: identifier.bytes, as: UTF8.self)
    let type = PropertyList.of([
      ("CFBundleURLName", .string(name)), ("CFBundleURLSchemes", .strings(schemes)),
    ])
    return try app(identifier, [("CFBundleURLTypes", .array([type]))] + more)
  }

  static func type(_ text: ByteString) throws -> TypeIdentifier {
    try #require(TypeIdentifier(text))
  }
}

extension PropertyList {
  /// Returns a dictionary.
  static func of(_ members: [(String, PropertyList)]) -> PropertyList {
    .dictionary(members.map { Member($0.0, $0.1) })
  }

  /// Returns a list of texts.
  static func strings(_ texts: [String]) -> PropertyList { .array(texts.map { .string($0) }) }

  /// Returns the declaration of a type.
  static func type(
    _ identifier: String, is parents: [String] = [], extensions: [String] = []
  ) -> PropertyList {
    .of([
      ("UTTypeIdentifier", .string(identifier)), ("UTTypeConformsTo", .strings(parents)),
      ("UTTypeTagSpecification", .of([("public.filename-extension", .strings(extensions))])),
    ])
  }
}
