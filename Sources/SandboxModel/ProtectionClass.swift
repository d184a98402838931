public import SystemIO

/// The class of data protection of a file: when its content can be read (Apple Platform Security,
/// "Data Protection classes"). The raw value is the word in policies and output.
public enum ProtectionClass: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// Class A, `NSFileProtectionComplete`: only while the device is unlocked.
  case complete
  /// Class B, `NSFileProtectionCompleteUnlessOpen`: while the device is unlocked, and afterwards by
  /// a process that opened the file before.
  case completeUnlessOpen = "complete-unless-open"
  /// Class C, `NSFileProtectionCompleteUntilFirstUserAuthentication`: after the first unlock since
  /// the device was started.
  case untilFirstUnlock = "until-first-unlock"
  /// Class D, `NSFileProtectionNone`: always.
  case unprotected = "none"

  /// The extended attribute in which files outside a device carry their class, as a decimal number.
  /// On a device the class is in the file system and in no attribute that other systems can read,
  /// so imports of backups write this one (docs/data-protection.md).
  public static let attribute: ByteString = "user.sandboxctl.protection-class"

  /// Whether the content of a closed file can be opened while the device is locked.
  public var isReadableWhileLocked: Bool { self == .untilFirstUnlock || self == .unprotected }

  /// The letter in Apple's documents.
  public var letter: Character {
    switch self {
    case .complete: "A"
    case .completeUnlessOpen: "B"
    case .untilFirstUnlock: "C"
    case .unprotected: "D"
    }
  }

  /// The number in backups of devices, 1 to 4.
  public var number: UInt8 {
    switch self {
    case .complete: 1
    case .completeUnlessOpen: 2
    case .untilFirstUnlock: 3
    case .unprotected: 4
    }
  }

  /// Reads the value of the extended attribute; nil for any other value, such as the numbers of
  /// classes that only keychain items have.
  public init?(attribute value: some Collection<UInt8>) {
    guard value.count == 1, let digit = value.first,
      let found = Self.allCases.first(where: { UInt8(ascii: "0") + $0.number == digit })
    else { return nil }
    self = found
  }
}
