public import SystemIO

/// One of an app's homes on a device, or a directory that is kept whole.
public struct Container: Hashable, Sendable {
  public let kind: ContainerKind
  /// The app, extension or group it says it is; nil when nothing tells.
  public let identifier: BundleIdentifier?
  public let identification: Identification
  /// The app it belongs to; nil for groups, directories, and what no app can be found for.
  public let owner: BundleIdentifier?
  /// Where it is, relative to the device's root and as the layout names it; absolute (with a slash
  /// first) for what lies outside the root, as Flatpak's settings do.
  public let path: ByteString
  /// Where it is, with all links followed.
  public let absolutePath: ByteString
  /// The only entry of the directory that belongs to the container, where not all of it does: a
  /// Flatpak app's settings are one file in a directory with those of other apps.
  public let member: ByteString?
  /// The name of its own directory, which is a UUID where the platform made it; nil for layouts that
  /// name containers by identifier.
  public let uuid: ByteString?
  /// The name of a snap's revision: `42`, or `x1` of one that was not installed from the store.
  public let revision: ByteString?
  /// When it was said that this revision is the one in use, before the app could change anything in
  /// it: the older of the times of the link that says so. Nil where nothing says it.
  public let inUseSince: Timestamp?
  /// The UUID in its metadata, which need not be the directory's name.
  public let metadataUUID: ByteString?
  /// The app's directory in a bundle's container: `Example.app`.
  public let bundleDirectory: ByteString?
  /// What logical paths call it: unique in the device.
  public let logical: LogicalContainer
  /// Whether its root could be opened.
  public let isReadable: Bool

  /// The logical path of its root: `apps/com.example.app/data`.
  public let logicalPrefix: ByteString

  /// What told whose container it is.
  public enum Identification: String, Hashable, Sendable, Comparable {
    /// The container's own metadata.
    case metadata
    /// The Info.plist of the bundle in it.
    case infoPlist = "info-plist"
    /// Its place: the layout names containers by identifier.
    case layout
    /// The name of a property list in its `Library/Preferences`: a guess.
    case preferences
    /// Nothing.
    case none

    /// The surer one is the smaller.
    public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int {
      switch self {
      case .infoPlist, .layout: 0
      case .metadata: 1
      case .preferences: 2
      case .none: 3
      }
    }
  }
}
