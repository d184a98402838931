package import SandboxModel
package import SystemIO

/// The apps that answer a URL scheme.
package struct SchemeHandlers: Sendable {
  /// The scheme in lower case.
  package let scheme: ByteString
  /// The system's entry for the scheme or for the URL's host, or nil if apps may handle it.
  package let system: SystemSchemes.Entry?
  /// The apps that declare the scheme, by identifier. They are not used if the scheme belongs to
  /// the system.
  package let apps: [Handler]

  /// An app's declaration of a scheme.
  package struct Handler: Sendable, Hashable {
    package let app: BundleIdentifier
    package let appName: ByteString?
    /// The name of the URL type (CFBundleURLName), or nil.
    package let name: ByteString?
    package let role: ByteString?
    /// The position in the Info.plist: `CFBundleURLTypes[0]`.
    package let key: String
  }

  /// Finds the handlers of a scheme.
  package init(
    of scheme: ByteString, _ version: SystemVersion?, in schemes: SystemSchemes,
    _ apps: [AppDeclarations]
  ) {
    let name = scheme.lowercasedASCII
    self.init(
      scheme: name, system: schemes.entry(ofScheme: name, version),
      apps: Self.handlers(of: name, apps))
  }

  /// Finds the handlers of a URL: those of its scheme, or the system's app for its host.
  package init(
    of url: URLText, _ version: SystemVersion?, in schemes: SystemSchemes, _ apps: [AppDeclarations]
  ) {
    let name = url.scheme.lowercasedASCII
    let byScheme = schemes.entry(ofScheme: name, version)
    let byHost =
      name == "http" || name == "https"
      ? schemes.entry(ofHost: url.host ?? "", path: url.path, version) : nil
    self.init(scheme: name, system: byHost ?? byScheme, apps: Self.handlers(of: name, apps))
  }

  private init(scheme: ByteString, system: SystemSchemes.Entry?, apps: [Handler]) {
    self.scheme = scheme
    self.system = system
    self.apps = apps
  }

  private static func handlers(of scheme: ByteString, _ apps: [AppDeclarations]) -> [Handler] {
    apps.compactMap { app in
      app.urlTypes.first { $0.schemes.contains(scheme) }.map { type in
        Handler(
          app: app.app, appName: app.name, name: type.name, role: type.role, key: type.key)
      }
    }
  }

  /// The apps that share the scheme if there are several: no rule decides which of them gets a URL
  /// (App Programming Guide for iOS, "Using URL Schemes to Communicate with Apps").
  package var conflict: [Handler] { system == nil && apps.count > 1 ? apps : [] }

  /// The app that gets URLs of the scheme, or nil if it is an app of the system, if there is none,
  /// or if the choice is not defined.
  package var winner: Handler? { system == nil && apps.count == 1 ? apps.first : nil }
}
