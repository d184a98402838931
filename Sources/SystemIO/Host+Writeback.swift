extension Host {
  /// `writebackDelay(settings:)` as it was when first asked for.
  public static let writebackDelay = writebackDelay(settings: "/proc/sys/vm")

  /// For how many seconds a store through a mapping may leave a file's time of modification as it was.
  ///
  /// The first store into a page moves the time; the next ones do so only when the page was written
  /// back since. That is done when it is older than `dirty_expire_centisecs`, by a thread that wakes
  /// each `dirty_writeback_centisecs` (the kernel's `Documentation/admin-guide/sysctl/vm.rst`), and
  /// takes a while. A minute where these are as distributions have them; a day where no thread wakes.
  ///
  /// - Parameter settings: the kernel's directory of settings of the virtual memory.
  public static func writebackDelay(settings: ByteString) -> Double {
    func seconds(_ key: ByteString) -> Double? {
      let bytes = try? Descriptor.open(path: settings.appending(key)).readAll(limit: 64)
      let digits = (bytes ?? []).prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      return Double(String(decoding: digits, as: UTF8.self)).map { $0 / 100 }
    }
    let (expire, wake) = (seconds("dirty_expire_centisecs"), seconds("dirty_writeback_centisecs"))
    let (leastDelay, whileItWrites, day) = (60.0, 25.0, 86_400.0)
    if wake == 0 { return day }
    return max(leastDelay, (expire ?? 30) + (wake ?? 5) + whileItWrites)
  }
}
