internal import Codecs
public import SandboxModel
public import SystemIO

/// What can be done with an app as a whole; the word of the command.
public enum AppChange: String, CaseIterable, Sendable, Hashable {
  case install
  case update
  case rollback
  case offload
  case reinstall
  case uninstall
}

/// Which data an app has when it goes back to an earlier version.
public enum DataChoice: String, CaseIterable, Sendable, Hashable {
  /// That of before the update.
  case before
  /// That of now.
  case now
  /// That of now, with what is missing or was older before.
  case merge
}

/// What is to become of an app, as somebody asked for it.
///
/// From a request, what is on the device and the policy follows an `AppChangePlan`, which says all that
/// will happen; an `AppChangeOperation` carries that out under the journal and gives an
/// `AppChangeReport`.
public struct AppChangeRequest: Sendable {
  public let change: AppChange
  /// The app.
  public let app: BundleIdentifier
  /// What is installed, of those that install something.
  public var package: AppPackage?
  /// Whether an older version may follow a newer one.
  public var allowsDowngrade = false
  /// Whether what the platform may drop goes, as if it had.
  public var isStrict = false
  /// Which data an app that goes back gets; where that is not said, that of before, unless the user has
  /// made something since.
  public var data: DataChoice?
  /// Whether groups that other apps share go back, too.
  public var withGroups = false
  /// Whether the app may run meanwhile.
  public var isForced = false
  /// Whether a snapshot of what is there is made first.
  public var savesFirst = true
  /// When it begins.
  public var time: Timestamp
  /// From which the names of new containers are made: the same seed gives the same plan.
  public var seed: [UInt8]

  /// Makes a request.
  public init(
    _ change: AppChange, of app: BundleIdentifier, package: AppPackage? = nil,
    time: Timestamp = Host.now(), seed: [UInt8] = Array(Host.randomHex(bytes: 16).utf8)
  ) {
    self.change = change
    self.app = app
    self.package = package
    self.time = time
    self.seed = seed
  }

  /// The name of a new container's directory, where the platform names them by UUIDs.
  func uuid(for container: LogicalContainer) -> ByteString {
    Device.uuid(of: Blake2b.hash(seed + container.prefix.bytes).bytes)
  }
}
