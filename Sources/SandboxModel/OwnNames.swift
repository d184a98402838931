public import SystemIO

/// The names of this program's own directories on a device: `.sandboxctl`, and the staging
/// directories of a restore beside or in containers (`.sandboxctl-restore-…`). They are neither
/// containers nor part of one.
public enum OwnNames {
  /// The program's directory at a device's root.
  public static let directory: ByteString = ".sandboxctl"

  /// Whether a name is one of the program's own.
  public static func has(_ name: ByteString) -> Bool { name.withSpan { has($0) } }

  /// Whether a name is one of the program's own.
  public static func has(_ name: Span<UInt8>) -> Bool {
    guard name.count >= plain.count else { return false }
    for index in 0..<plain.count where name[index] != plain[index] { return false }
    if name.count == plain.count { return true }
    guard name.count > staging.count else { return false }
    for index in plain.count..<staging.count where name[index] != staging[index] { return false }
    return true
  }

  /// Whether a name is that of the program's directory at a device's root.
  public static func isDirectory(_ name: Span<UInt8>) -> Bool {
    name.count == plain.count && has(name)
  }

  private static let plain = Array(".sandboxctl".utf8)
  private static let staging = Array(".sandboxctl-restore-".utf8)
}
