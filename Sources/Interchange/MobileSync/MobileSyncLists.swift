internal import Codecs
internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

/// The property lists of a backup that is being written.
struct MobileSyncLists {
  let device: MobileSyncDevice
  /// The domains of the files.
  let domains: Set<ByteString>
  /// The keys of an encrypted backup.
  let keys: MobileSyncKeys?

  /// A version of iOS whose backups have the form that is written. Readers use the version to
  /// decide where contents are, how a key is derived, and whether Manifest.db is encrypted. The
  /// form is that of 10.2, but pyiosbackup treats that version as an older one.
  private static let version = "10.3"

  /// The version of the device if its backups have this form and readers can compare it.
  private var version: String {
    guard let known = device.osVersion else { return Self.version }
    let parts = known.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let numbers = parts.compactMap { part in
      part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        ? Int(String(decoding: part, as: UTF8.self)) : nil
    }
    let isKnown = numbers.count == parts.count && [10, 2].lexicographicallyPrecedes(numbers)
    return isKnown ? known : Self.version
  }

  /// The lists with their names, in the order in which they are written.
  var all: [(name: ByteString, list: PropertyList)] {
    [("Info.plist", info), ("Manifest.plist", manifest), (MobileSyncBackup.status, status)]
  }

  private var date: PropertyList { .date(Double((device.madeAt?.seconds ?? 0) - 978_307_200)) }

  /// The list of the computer, from which programs take the name of the backup.
  private var info: PropertyList {
    let apps = device.apps.compactMap { $0.identifier.utf8.map { PropertyList.string($0) } }
    return .dictionary(
      Self.texts([
        ("Device Name", device.name), ("Display Name", device.name),
        ("Product Type", device.productType), ("Product Version", version),
        ("Build Version", device.buildVersion), ("Serial Number", device.serialNumber),
        ("Target Identifier", device.identifier), ("Unique Identifier", device.identifier),
        ("Target Type", "Device"),
      ]) + [
        .init("Installed Applications", .array(apps)), .init("Last Backup Date", date),
      ])
  }

  /// The containers by identifier: the apps, and the extensions and groups with files. A device
  /// does not accept files of containers that are not listed.
  private var containers: [PropertyList.Member] {
    var listed: [ByteString: (contentClass: String, build: String?)] = [:]
    for domain in domains {
      guard let (name, contentClass) = MobileSyncDomains.listedContainer(of: domain) else {
        continue
      }
      // If an app and a group have the same identifier, the app is listed.
      if listed[name]?.contentClass == "Data/Application" { continue }
      listed[name] = (contentClass, nil)
    }
    for app in device.apps { listed[app.identifier] = ("Data/Application", app.build) }
    return listed.sorted { $0.key < $1.key }.compactMap { name, container in
      name.utf8.map { name in
        PropertyList.Member(
          name,
          .dictionary(
            Self.texts([
              ("CFBundleIdentifier", name), ("CFBundleVersion", container.build),
              ("ContainerContentClass", container.contentClass),
            ])))
      }
    }
  }

  private var manifest: PropertyList {
    // Readers expect a text, which is empty if the value is unknown.
    let lockdown = Self.texts([
      ("BuildVersion", device.buildVersion), ("DeviceName", device.name ?? ""),
      ("ProductType", device.productType ?? ""), ("ProductVersion", version),
      ("SerialNumber", device.serialNumber ?? ""), ("UniqueDeviceID", device.identifier),
    ])
    var encryption: [PropertyList.Member] = [
      .init("BackupKeyBag", .data(keys?.keybag ?? MobileSyncKeys.plainKeybag()))
    ]
    if let keys { encryption.append(.init("ManifestKey", .data(keys.manifestKey))) }
    let members: [PropertyList.Member] = [
      .init("Applications", .dictionary(containers)), .init("Date", date),
      .init("IsEncrypted", .bool(keys != nil)), .init("Lockdown", .dictionary(lockdown)),
      .init("SystemDomainsVersion", .string("24.0")), .init("Version", .string("10.0")),
      .init("WasPasscodeSet", .bool(false)),
    ]
    return .dictionary(members + encryption)
  }

  /// The list that marks the backup as complete.
  private var status: PropertyList {
    .dictionary([
      .init("BackupState", .string("new")), .init("Date", date),
      .init("IsFullBackup", .bool(true)), .init("SnapshotState", .string("finished")),
      .init("UUID", .string(uuid)), .init("Version", .string("3.3")),
    ])
  }

  /// The identifier of the backup: the same for the same device and date.
  private var uuid: String {
    let name = "\(device.identifier ?? "") \(device.madeAt?.seconds ?? 0)"
    let digest = MessageDigest.digest(of: Array(name.utf8).span, .sha1)
    return Device.uuid(of: digest).description
  }

  /// The members whose text is known.
  private static func texts(_ members: [(String, String?)]) -> [PropertyList.Member] {
    members.compactMap { name, text in text.map { PropertyList.Member(name, .string($0)) } }
  }
}
