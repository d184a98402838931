extension Host {
  /// The result of `writebackDelay(settings:)` when first used.
  package static let writebackDelay = writebackDelay(settings: "/proc/sys/vm")

  /// Returns the number of seconds for which a store through a mapping may leave a file's
  /// modification time unchanged.
  ///
  /// The first store into a page updates the time; later ones do so only after the page has been
  /// written back. The kernel does that once the page is older than `dirty_expire_centisecs`, in a
  /// thread that wakes every `dirty_writeback_centisecs`
  /// (`Documentation/admin-guide/sysctl/vm.rst`), and it takes a while. The delay is a minute with
  /// the usual settings, and a day if no thread wakes.
  ///
  /// - Parameter settings: the kernel's directory of virtual memory settings.
  package static func writebackDelay(settings: ByteString) -> Double {
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
