/// What a piece of data is; the word a rule's `class:` uses.
public enum DataClass: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// What the user made and nobody can make again.
  case userData = "user-data"
  /// What other apps handed over and the user has not taken in yet.
  case inbox
  /// What the app needs to work as it did, such as databases of its own.
  case support
  /// The user's settings.
  case preferences
  /// What can be fetched again, but is not purged by this program.
  case downloaded
  /// What the app makes or fetches again when it is missing.
  case cache
  /// What is needed for the moment only.
  case temporary
  /// The app itself.
  case bundle
  /// What the platform notes about a container.
  case metadata
  /// What no rule knows: kept, and never purged.
  case unknown

  /// Whether losing it loses something that no one can make again, as far as the policy knows.
  public var isPrecious: Bool { self == .userData || self == .inbox || self == .unknown }

  /// Whether a mark may turn it into something that is purged (docs/design.md, marks).
  func yieldsToMarks(belowCache: Bool) -> Bool {
    switch self {
    case .cache, .temporary: true
    case .unknown: belowCache
    default: false
    }
  }
}
