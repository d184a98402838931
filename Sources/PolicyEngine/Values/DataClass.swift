/// The class of data, set by `class:` in a rule.
package enum DataClass: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// Data that the user created and that cannot be recreated.
  case userData = "user-data"
  /// Data from other apps that the user has not imported yet.
  case inbox
  /// Data that the app needs to work as before, such as its databases.
  case support
  /// The user's settings.
  case preferences
  /// Data that can be downloaded again, but is not purged by this program.
  case downloaded
  /// Data that the app recreates or downloads again if it is missing.
  case cache
  /// Data with a short-lived purpose.
  case temporary
  /// The app itself.
  case bundle
  /// The platform's metadata about a container.
  case metadata
  /// Data that no rule matches: kept, and never purged.
  case unknown

  /// Whether its loss is permanent, as far as the policy knows.
  package var isPrecious: Bool { self == .userData || self == .inbox || self == .unknown }

  /// Whether a marker may make it purgeable (docs/design.md, marks).
  func acceptsMarkers(belowCache: Bool) -> Bool {
    switch self {
    case .cache, .temporary: true
    case .unknown: belowCache
    default: false
    }
  }
}
