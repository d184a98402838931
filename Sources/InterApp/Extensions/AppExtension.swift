package import Codecs
package import SandboxModel
package import SystemIO

/// An extension in an app's bundle, with the keys of its Info.plist that decide where it is
/// offered.
package struct AppExtension: Sendable {
  package let app: BundleIdentifier
  /// The display name of the app, if its bundle has one.
  package let appName: ByteString?
  package let identifier: BundleIdentifier
  package let name: ByteString?
  package let version: ByteString?
  package let build: ByteString?
  /// The directory in the app's bundle container: `Example.app/PlugIns/Share.appex`.
  package let path: ByteString
  /// The extension point (NSExtensionPointIdentifier, or EXExtensionPointIdentifier from iOS 16),
  /// or nil if the Info.plist names none.
  package let point: ByteString?
  package let rule: ActivationRule
  /// The values that could not be used, and other mistakes.
  package let findings: [DeclarationFinding]

  /// Reads the Info.plist of an extension. Never fails: mistakes are in `findings`.
  package init(_ item: App.Extension, of app: App, info list: PropertyList) {
    var reader = DeclarationReader(app.identifier)
    let name = item.path.lastComponent?.description ?? ""
    self.app = app.identifier
    appName = app.displayName
    identifier = item.identifier
    self.name = item.displayName
    version = item.version
    build = item.build
    path = item.path
    (point, rule) = Self.declaration(list, at: name, &reader)
    findings = reader.findings
  }

  private static func declaration(
    _ list: PropertyList, at name: String, _ reader: inout DeclarationReader
  ) -> (ByteString?, ActivationRule) {
    if let new = dictionary("EXAppExtensionAttributes", of: list, at: name, &reader) {
      let key = "\(name): EXAppExtensionAttributes"
      let point = reader.text("EXExtensionPointIdentifier", of: new, at: key)
      if point == nil { reader.warn(key, "it has no EXExtensionPointIdentifier") }
      return (point, ActivationRule(new, at: key, &reader))
    }
    guard let old = dictionary("NSExtension", of: list, at: name, &reader) else {
      reader.warn("\(name): NSExtension", "it is missing, so the system does not use the extension")
      return (nil, .missing)
    }
    let key = "\(name): NSExtension"
    let point = reader.text("NSExtensionPointIdentifier", of: old, at: key)
    if point == nil { reader.warn(key, "it has no NSExtensionPointIdentifier") }
    let attributes = dictionary("NSExtensionAttributes", of: old, at: key, &reader)
    return (point, ActivationRule(attributes, at: "\(key).NSExtensionAttributes", &reader))
  }

  private static func dictionary(
    _ key: String, of list: PropertyList, at place: String, _ reader: inout DeclarationReader
  ) -> PropertyList? {
    guard let value = list[key] else { return nil }
    if value.dictionaryValue != nil { return value }
    reader.warn("\(place): \(key)", "it is of the type \(value.kind), not a dictionary")
    return nil
  }
}
