internal import Codecs
package import SystemIO

/// The description of a backup in its property lists. (Info.plist is written by the computer,
/// Manifest.plist and Status.plist by the device.)
package struct MobileSyncDevice: Hashable, Sendable {
  /// The name that the owner gave the device.
  package var name: String?
  /// The unique device identifier.
  package var identifier: String?
  /// The model, such as `iPhone9,3`.
  package var productType: String?
  /// The version of iOS, such as `16.1`.
  package var osVersion: String?
  package var buildVersion: String?
  package var serialNumber: String?
  /// The time of the backup.
  package var madeAt: Timestamp?
  /// The apps with their versions, ordered by identifier.
  package var apps: [App] = []

  /// An app on the device.
  package struct App: Hashable, Sendable {
    package var identifier: ByteString
    /// The build (`CFBundleVersion`).
    package var build: String?

    /// Creates an app.
    package init(identifier: ByteString, build: String? = nil) {
      self.identifier = identifier
      self.build = build
    }
  }

  /// Creates an empty description.
  package init() {}

  /// Returns an identifier for a device that has none, in the old form (40 hexadecimal digits): it
  /// distinguishes devices, and readers use it to find the password of a backup.
  ///
  /// - Parameter identity: a name of the device that stays the same.
  package static func identifier(for identity: String) -> String {
    Hex.encode(MessageDigest.digest(of: Array(identity.utf8).span, .sha1))
  }
}

/// The property lists of a backup.
struct MobileSyncProperties {
  var device = MobileSyncDevice()
  /// Whether the contents are encrypted.
  let isEncrypted: Bool
  /// The keybag, which plain backups have, too.
  let keybag: [UInt8]?
  /// The key of Manifest.db; nil if it is not encrypted, as in iOS 10.0 and 10.1.
  let manifestKey: [UInt8]?
  /// The state in Status.plist: `finished`, unless the backup is incomplete.
  let snapshotState: String?

  /// Takes the values of the lists. Only that of the manifest is required.
  init(manifest: PropertyList, info: PropertyList?, status: PropertyList?) {
    isEncrypted = manifest["IsEncrypted"].map { $0 == .bool(true) || $0 == .integer(1) } ?? false
    keybag = Self.data(manifest["BackupKeyBag"])
    manifestKey = Self.data(manifest["ManifestKey"])
    snapshotState = status?["SnapshotState"]?.stringValue
    let lockdown = manifest["Lockdown"]
    // An empty text means that the writer did not know the value.
    func text(_ key: String, _ infoKey: String) -> String? {
      [lockdown?[key]?.stringValue, info?[infoKey]?.stringValue].compactMap(\.self)
        .first { !$0.isEmpty }
    }
    device.name = text("DeviceName", "Device Name")
    device.identifier = text("UniqueDeviceID", "Unique Identifier")
    device.productType = text("ProductType", "Product Type")
    device.osVersion = text("ProductVersion", "Product Version")
    device.buildVersion = text("BuildVersion", "Build Version")
    device.serialNumber = text("SerialNumber", "Serial Number")
    device.madeAt =
      Self.time(status?["Date"]) ?? Self.time(manifest["Date"])
      ?? Self.time(info?["Last Backup Date"])
    device.apps = Self.apps(manifest: manifest, info: info)
  }

  /// The apps of the manifest that are neither extensions nor groups, and those that the computer
  /// lists.
  private static func apps(
    manifest: PropertyList, info: PropertyList?
  ) -> [MobileSyncDevice.App] {
    var builds: [ByteString: String?] = [:]
    for name in info?["Installed Applications"]?.arrayValue ?? [] {
      if let name = name.stringValue { builds[ByteString(name)] = .some(nil) }
    }
    for member in manifest["Applications"]?.dictionaryValue ?? [] {
      let kind = member.value["ContainerContentClass"]?.stringValue
      if let kind, kind != "Data/Application" { continue }
      builds[ByteString(member.key)] = .some(member.value["CFBundleVersion"]?.stringValue)
    }
    return builds.map { MobileSyncDevice.App(identifier: $0.key, build: $0.value) }
      .sorted { $0.identifier < $1.identifier }
  }

  private static func data(_ value: PropertyList?) -> [UInt8]? {
    if case .data(let bytes) = value { return bytes }
    return nil
  }

  /// The time of a date, which counts from 2001-01-01T00:00:00Z.
  private static func time(_ value: PropertyList?) -> Timestamp? {
    guard case .date(let seconds) = value, let whole = Int64(exactly: seconds.rounded(.down)),
      abs(whole) < 1 << 40
    else { return nil }
    return Timestamp(seconds: whole + 978_307_200)
  }
}
