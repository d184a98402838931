package import Codecs
package import SystemIO

/// A directory of an app that the rules of Auto Backup name, with its place.
///
/// Source: AOSP, `FullBackup.java` (`getDirectoryForCriteriaDomain`); developer.android.com, "Back
/// up user data with Auto Backup".
package enum AutoBackupDomain: String, CaseIterable, Sendable, Hashable {
  case root, file, database, sharedpref, external
  case deviceRoot = "device_root"
  case deviceFile = "device_file"
  case deviceDatabase = "device_database"
  case deviceSharedpref = "device_sharedpref"

  /// The storage with the directory.
  package var storage: AutoBackupLocation.Storage {
    switch self {
    case .root, .file, .database, .sharedpref: .credentialProtected
    case .deviceRoot, .deviceFile, .deviceDatabase, .deviceSharedpref: .deviceProtected
    case .external: .external
    }
  }

  /// The path of the directory in the app's part of that storage.
  package var directory: [ByteString] {
    switch self {
    case .root, .deviceRoot, .external: []
    case .file, .deviceFile: ["files"]
    case .database, .deviceDatabase: ["databases"]
    case .sharedpref, .deviceSharedpref: ["shared_prefs"]
    }
  }

  /// Whether the domain contains those of other directories, which are not a part of it.
  var isRoot: Bool { self == .root || self == .deviceRoot }
}

/// A path in an app's part of a storage.
package struct AutoBackupLocation: Hashable, Sendable {
  /// The storages in which an app has a directory.
  package enum Storage: Hashable, Sendable {
    /// `/data/data/<package>`.
    case credentialProtected
    /// `/data/user_de/<user>/<package>`, available before the first unlock.
    case deviceProtected
    /// `Android/data/<package>/files` on external storage.
    case external
  }

  package var storage: Storage
  package var path: [ByteString]

  /// Creates a location.
  package init(_ storage: Storage = .credentialProtected, _ path: [ByteString]) {
    self.storage = storage
    self.path = path
  }

  /// Creates the location of a path in a domain.
  package init(_ domain: AutoBackupDomain, _ path: [ByteString]) {
    self.init(domain.storage, domain.directory + path)
  }
}

/// The rules by which Android includes an app's files in backups.
package struct AutoBackupRules: Hashable, Sendable {
  /// An element `include` or `exclude`.
  package struct Rule: Hashable, Sendable {
    package var domain: AutoBackupDomain
    /// The location of the path and everything below it.
    package var location: AutoBackupLocation
    /// The properties that a backup must have for an `include`.
    package var required: AutoBackupTransport = []
    /// The position of the element in its file.
    package var position: CodecError.Position
  }

  /// The rules of one file, or of one section of it.
  package struct Section: Hashable, Sendable {
    package var includes: [Rule] = []
    package var excludes: [Rule] = []
    /// Whether the backup is disabled unless it is encrypted on the device
    /// (`disableIfNoEncryptionCapabilities`).
    package var requiresEncryption = false
    /// The remarks on parts of it that Android ignores.
    package var remarks: [AutoBackupRemark] = []

    /// Creates a section without rules, which includes everything.
    package init() {}
  }

  /// The attribute `android:fullBackupContent`.
  package enum FullBackup: Hashable, Sendable {
    /// The attribute is absent or `true`.
    case everything
    /// `false`: no backup.
    case disabled
    case rules(Section)
  }

  /// The file that `android:dataExtractionRules` names, for Android 12 and later.
  package struct DataExtraction: Hashable, Sendable {
    /// `cloud-backup`; nil if the section is absent.
    package var cloud: Section?
    /// `device-transfer`; nil if the section is absent.
    package var transfer: Section?
    /// The remarks on parts outside the sections that Android ignores.
    package var remarks: [AutoBackupRemark] = []

    /// Creates rules of both sections.
    package init(cloud: Section? = nil, transfer: Section? = nil) {
      self.cloud = cloud
      self.transfer = transfer
    }
  }

  /// The attribute `android:allowBackup`.
  package var allowsBackup: Bool
  /// The API level for which the app is built (`android:targetSdkVersion`).
  package var targetVersion: Int
  package var fullBackup: FullBackup
  package var extraction: DataExtraction?

  /// The API level of Android 12, from which the older rules do not apply to transfers.
  package static let separateTransfers = 31

  /// Creates rules; without arguments, those of an app that declares none.
  package init(
    allowsBackup: Bool = true, targetVersion: Int = separateTransfers,
    fullBackup: FullBackup = .everything, extraction: DataExtraction? = nil
  ) {
    self.allowsBackup = allowsBackup
    self.targetVersion = targetVersion
    self.fullBackup = fullBackup
    self.extraction = extraction
  }
}

/// The properties of a backup's transport that `requireFlags` can demand.
///
/// Source: AOSP, `BackupAgent.java` (`FLAG_…`), `FullBackup.java` (`FLAG_REQUIRED_…`).
package struct AutoBackupTransport: OptionSet, Hashable, Sendable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// The backup is encrypted with a key that only the device has.
  package static let clientSideEncryption = AutoBackupTransport(rawValue: 1)
  /// The data goes to another device directly.
  package static let deviceToDevice = AutoBackupTransport(rawValue: 2)
  /// A test transport that claims encryption.
  package static let fakeEncryption = AutoBackupTransport(rawValue: 1 << 31)

  /// The names in `requireFlags`.
  static let names: [String: AutoBackupTransport] = [
    "clientSideEncryption": .clientSideEncryption, "deviceToDeviceTransfer": .deviceToDevice,
    "fakeClientSideEncryption": .fakeEncryption,
  ]
}

/// The maximum data that a backup of an app may have.
///
/// The archive that the app sends is measured, so headers and padding of files count as well.
/// Android asks the transport and has no number of its own; larger backups are not stored at all,
/// and the last smaller one stays.
///
/// Source: developer.android.com, "Back up user data with Auto Backup" (25 MB per app and user);
/// AOSP, `LocalTransport.java` (`FULL_BACKUP_SIZE_QUOTA`, 25 × 1024 × 1024), CTS,
/// `FullBackupQuotaTest.java`.
package enum AutoBackupQuota {
  /// The quota of Auto Backup to the cloud in bytes. Transfers between devices have none.
  package static let bytes: UInt64 = 25 << 20

  /// Returns the bytes that a file or directory takes of the quota.
  ///
  /// - Parameters:
  ///   - token: The token of its tree (`AndroidBackupPath`).
  ///   - path: The path in the tree.
  ///   - size: The size in bytes; 0 for a directory.
  package static func size(
    package: ByteString, token: ByteString, path: [ByteString], size: UInt64
  ) -> UInt64 {
    let place = AndroidBackupPath.Stored(package: package, token: token, inner: path)
    let header = AndroidTarHeader(
      prefix: place.prefix, path: ByteString(joining: path), isDirectory: false, size: size,
      permissions: 0, owner: 0, group: 0, modified: 0)
    return UInt64(header.encoded().count) + size + UInt64(AndroidTarHeader.padding(after: size))
  }
}
