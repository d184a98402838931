package import SandboxModel
package import SystemIO

/// The opening of a URL on a device: the app that gets it, and how.
package struct URLOpening: Sendable {
  package let url: URLText
  package let handlers: SchemeHandlers
  package let receiver: Receiver
  /// The calls to the app in order; empty unless one app of the device gets the URL.
  package let calls: [DelegateCall]
  /// The picture shown meanwhile, or nil if no app of the device gets the URL.
  package let image: LaunchImage?
  /// Whether the app is launched for the URL.
  package let isLaunched: Bool

  /// The receiver of a URL.
  package enum Receiver: Sendable, Hashable {
    /// An app of the system.
    case system(SystemSchemes.Entry)
    case app(BundleIdentifier)
    /// Several apps have the scheme, and the platform does not define which of them gets the URL.
    case undefined([BundleIdentifier])
    /// No app has the scheme.
    case nobody
  }

  /// The conditions of an opening.
  package struct Conditions: Sendable {
    /// The state of the app that gets the URL.
    package let state: AppState
    /// The version of the system, or nil for the newest.
    package let version: SystemVersion?
    package let idiom: LaunchImage.Idiom

    /// Creates conditions.
    package init(state: AppState, version: SystemVersion?, idiom: LaunchImage.Idiom) {
      self.state = state
      self.version = version
      self.idiom = idiom
    }
  }

  /// Determines the receiver and the calls.
  ///
  /// - Parameter names: Returns the names of the files in an app's bundle.
  package init(
    _ url: URLText, _ conditions: Conditions, handlers: SchemeHandlers, apps: [AppDeclarations],
    names: (BundleIdentifier) -> Set<ByteString>
  ) {
    self.url = url
    self.handlers = handlers
    let found = handlers.winner?.app
    if let entry = handlers.system {
      receiver = .system(entry)
    } else if let found {
      receiver = .app(found)
    } else {
      receiver = handlers.apps.isEmpty ? .nobody : .undefined(handlers.apps.map(\.app))
    }
    guard let app = apps.first(where: { $0.app == found }), handlers.system == nil else {
      (calls, image, isLaunched) = ([], nil, false)
      return
    }
    let state = Self.state(of: app, conditions)
    calls = DelegateCall.calls(
      from: state, on: conditions.version, hasScenes: app.launch.hasScenes)
    image = LaunchImage(
      for: handlers.scheme, from: state, on: conditions.version, conditions.idiom,
      keys: app.launch, names: names(app.app))
    isLaunched = state == .notRunning
  }

  /// Returns the state of an app: before iOS 4, and for apps that end on suspension, the state is
  /// never `background`.
  private static func state(of app: AppDeclarations, _ conditions: Conditions) -> AppState {
    let hasBackground =
      !app.launch.exitsOnSuspend && (conditions.version.map { SystemVersion(4) <= $0 } ?? true)
    return conditions.state == .background && !hasBackground ? .notRunning : conditions.state
  }
}
