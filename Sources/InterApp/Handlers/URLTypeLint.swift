internal import SandboxModel
internal import SystemIO

/// Checks the URL types of all apps of a device (Information Property List Key Reference,
/// CFBundleURLTypes): names must be unique and in reverse-DNS form, and schemes must not be the
/// system's.
package enum URLTypeLint {
  /// Returns the findings, in the order of the apps.
  package static func findings(
    _ apps: [AppDeclarations], _ schemes: SystemSchemes, on version: SystemVersion?
  ) -> [DeclarationFinding] {
    var owners: [ByteString: [(app: BundleIdentifier, key: String)]] = [:]
    for app in apps {
      for type in app.urlTypes {
        if let name = type.name { owners[name, default: []].append((app.app, type.key)) }
      }
    }
    return apps.flatMap { app in
      app.urlTypes.flatMap { type in
        findings(ofName: type.name, owners: owners, app: app.app, key: type.key)
          + type.schemes.compactMap { scheme in
            schemes.entry(ofScheme: scheme, version).map { entry in
              DeclarationFinding(
                .warning, of: app.app, at: "\(type.key).CFBundleURLSchemes",
                reason:
                  "the scheme '\(scheme)' belongs to the system: \(entry.app) opens it, and this app "
                  + "is not asked")
            }
          }
      }
    }
  }

  private static func findings(
    ofName name: ByteString?, owners: [ByteString: [(app: BundleIdentifier, key: String)]],
    app: BundleIdentifier, key: String
  ) -> [DeclarationFinding] {
    let place = "\(key).CFBundleURLName"
    guard let name else {
      return [DeclarationFinding(.warning, of: app, at: place, reason: "it is missing or empty")]
    }
    var reasons: [String] = []
    if let setting = DeclarationReader.buildSetting(in: name) {
      reasons.append("'\(name)' has the unresolved build setting '\(setting)'")
    } else if let fault = TypeIdentifier.fault(of: name) {
      reasons.append("'\(name)' is not a reverse-DNS name: \(fault)")
    }
    if let other = owners[name]?.first(where: { $0.app != app || $0.key != key }) {
      let owner = other.app == app ? other.key : "'\(other.app)'"
      reasons.append("'\(name)' is not unique: it is also the name of a URL type of \(owner)")
    }
    return reasons.map { DeclarationFinding(.warning, of: app, at: place, reason: $0) }
  }
}
