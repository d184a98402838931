internal import CLinux
internal import Glibc

/// The machine, the user, clocks and random numbers.
public enum Host {
  /// Returns the time of the real-time clock in nanosecond resolution.
  public static func now() -> Timestamp {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
  }

  /// Returns the seconds of the monotonic clock, for measuring durations.
  public static func monotonicSeconds() -> Double {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
  }

  /// Returns the seconds since the system was started. Unlike `monotonicSeconds()`, they include
  /// the time during which it was suspended.
  public static func bootSeconds() -> Double {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
  }

  /// Suspends the current thread.
  public static func pause(seconds: Double) {
    if seconds > 0 { cl_pause(Int64(seconds * 1_000_000_000)) }
  }

  /// The host name (`uname(2)`).
  public static var name: String {
    var names = utsname()
    guard unsafe uname(&names) == 0 else { return "localhost" }
    return unsafe withUnsafeBytes(of: &names.nodename) {
      unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
  }

  /// The effective user ID.
  public static var userID: UInt32 { geteuid() }

  /// The process ID.
  public static var processID: Int32 { getpid() }

  /// The effective group ID.
  public static var groupID: UInt32 { getegid() }

  /// Returns the name of a user, or nil if the ID is unknown.
  public static func userName(_ id: UInt32) -> String? {
    var entry = unsafe passwd()
    var found = unsafe UnsafeMutablePointer<passwd>?.none
    var buffer = [CChar](repeating: 0, count: 16 * 1024)
    guard unsafe getpwuid_r(id, &entry, &buffer, buffer.count, &found) == 0, unsafe found != nil
    else { return nil }
    return unsafe String(cString: entry.pw_name)
  }

  /// Returns the name of a group, or nil if the ID is unknown.
  public static func groupName(_ id: UInt32) -> String? {
    var entry = unsafe group()
    var found = unsafe UnsafeMutablePointer<group>?.none
    var buffer = [CChar](repeating: 0, count: 64 * 1024)
    guard unsafe getgrgid_r(id, &entry, &buffer, buffer.count, &found) == 0, unsafe found != nil
    else { return nil }
    return unsafe String(cString: entry.gr_name)
  }

  /// Returns the value of an environment variable, or nil if it is unset or empty.
  public static func environment(_ name: String) -> ByteString? {
    guard let value = unsafe getenv(name) else { return nil }
    let bytes = unsafe ByteString(
      UnsafeBufferPointer(start: value, count: strlen(value)).map { UInt8(bitPattern: $0) })
    return bytes.isEmpty ? nil : bytes
  }

  /// The user's cache directory: `$XDG_CACHE_HOME` or `~/.cache`; nil if neither is an absolute
  /// path.
  public static var cacheDirectory: ByteString? { baseDirectory("XDG_CACHE_HOME", ".cache") }

  /// The user's configuration directory: `$XDG_CONFIG_HOME` or `~/.config`; nil if neither is an
  /// absolute path.
  public static var configurationDirectory: ByteString? {
    baseDirectory("XDG_CONFIG_HOME", ".config")
  }

  /// The user's data directory: `$XDG_DATA_HOME` or `~/.local/share`; nil if neither is an absolute
  /// path.
  public static var dataDirectory: ByteString? { baseDirectory("XDG_DATA_HOME", ".local/share") }

  /// Returns a directory of the XDG Base Directory Specification 0.8, which ignores relative paths.
  private static func baseDirectory(_ variable: String, _ standard: ByteString) -> ByteString? {
    if let named = environment(variable), named.isAbsolute { return named }
    guard let home = environment("HOME"), home.isAbsolute else { return nil }
    return home.appending(standard)
  }

  /// Returns random bytes from the kernel.
  public static func random(count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let more = unsafe bytes.withUnsafeMutableBytes {
        unsafe cl_random($0.baseAddress?.advanced(by: filled), count - filled)
      }
      // getrandom(2) fails only on a kernel without it or with a bad address.
      precondition(more > 0, "the kernel returned no random bytes")
      filled += more
    }
    return bytes
  }

  /// Returns random bytes as hexadecimal digits, two for each byte.
  public static func randomHex(bytes count: Int) -> String {
    random(count: count).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// Makes all data written to all volumes durable, unless an error prevents it: errors are not
  /// reported (sync(2)).
  static func syncAllVolumes() { Glibc.sync() }

  /// The number of processors available to this process.
  public static var processors: Int { max(1, cl_processors()) }

  /// The arguments of the program without its name, byte for byte.
  ///
  /// `CommandLine.arguments` replaces bytes that are not UTF-8 with U+FFFD and so would name other
  /// files, and is empty if `/proc/self/maps` cannot be read.
  public static var arguments: [ByteString] {
    var words: [ByteString] = []
    while let word = unsafe cl_argument(Int32(words.count + 1)) {
      let bytes = unsafe UnsafeBufferPointer(start: word, count: strlen(word))
      words.append(unsafe ByteString(bytes.map { UInt8(bitPattern: $0) }))
    }
    return words
  }

  /// Returns freed blocks of 1 MiB or more to the system.
  ///
  /// By default glibc does so only until the first such block is freed. From then on it keeps ever
  /// larger blocks in its heaps, which fragment: at the end of a backup half of the memory was
  /// holes. Applies to the whole process, so call it at the start.
  public static func returnLargeBlocks() {
    cl_map_blocks_from(1 << 20)
  }

  /// The version of the running kernel, or nil if its release cannot be parsed.
  public static let kernelVersion: KernelVersion? = {
    var names = utsname()
    guard unsafe uname(&names) == 0 else { return nil }
    let release = unsafe withUnsafeBytes(of: &names.release) {
      unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
    return KernelVersion(release: release)
  }()
}

/// The version of a Linux kernel.
public struct KernelVersion: Sendable, Hashable, Comparable {
  public let major: Int
  public let minor: Int

  /// Creates a version.
  public init(_ major: Int, _ minor: Int) { (self.major, self.minor) = (major, minor) }

  /// Parses a release such as `6.1.0-18-amd64`; nil if it does not begin with two numbers.
  public init?(release: some StringProtocol) {
    let numbers = release.split(separator: ".", maxSplits: 2).prefix(2)
      .map { $0.prefix { ("0"..."9").contains($0) } }
    guard numbers.count == 2, let major = Int(numbers[0]), let minor = Int(numbers[1])
    else { return nil }
    self.init(major, minor)
  }

  public static func < (left: KernelVersion, right: KernelVersion) -> Bool {
    (left.major, left.minor) < (right.major, right.minor)
  }

  /// Whether syncfs(2) reports write errors of the volume (since Linux 5.8).
  public var reportsErrorsOfVolumeSync: Bool { self >= KernelVersion(5, 8) }
}
