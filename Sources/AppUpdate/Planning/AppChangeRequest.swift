package import AppPackages
internal import Codecs
internal import DeviceDiscovery
package import SandboxModel
package import SystemIO

/// An operation on an app; the raw value is the name of the command.
package enum AppChange: String, CaseIterable, Sendable, Hashable {
  case install
  case update
  case rollback
  case offload
  case reinstall
  case uninstall
}

/// A request for an operation on an app.
///
/// The request, the state of the device and the policy determine an `AppChangePlan`, which
/// describes all changes. An `AppChangeOperation` executes the plan under the journal and returns
/// an `AppChangeReport`.
package struct AppChangeRequest: Sendable {
  package let change: AppChange
  /// The app.
  package let app: BundleIdentifier
  /// The package to install, for the operations that install one.
  package var package: AppPackage?
  /// Whether an older version may replace a newer one.
  package var allowsDowngrade = false
  /// Whether data that the platform may discard is removed, as if the platform had done so.
  package var isStrict = false
  /// The data of an app that is rolled back. Nil means the data from before the update, unless the
  /// user has created data since.
  package var data: DataChoice?
  /// Whether groups shared with other apps are rolled back too.
  package var withGroups = false
  /// Whether the app may be running.
  package var isForced = false
  /// Whether a snapshot of the current state is made first.
  package var savesFirst = true
  /// The start time.
  package var time: Timestamp
  /// The seed for the names of new containers. Equal seeds yield equal plans.
  package var seed: [UInt8]

  /// Creates a request.
  package init(
    _ change: AppChange, of app: BundleIdentifier, package: AppPackage? = nil,
    time: Timestamp = Host.now(), seed: [UInt8] = Array(Host.randomHex(bytes: 16).utf8)
  ) {
    self.change = change
    self.app = app
    self.package = package
    self.time = time
    self.seed = seed
  }

  /// Returns the directory name of a new container, on platforms that name containers by UUID.
  func uuid(for container: LogicalContainer) -> ByteString {
    Device.uuid(of: Blake2b.hash(seed + container.prefix.bytes).bytes)
  }

  /// The data of an app that is rolled back to an earlier version.
  package enum DataChoice: String, CaseIterable, Sendable, Hashable {
    /// The data from before the update.
    case before
    /// The current data.
    case now
    /// The current data, with missing and older files restored from before the update.
    case merge
  }
}
