extension Host {
  /// The machine ID from `/etc/machine-id`, or nil if there is none.
  public static var machineID: String? {
    guard let file = try? Descriptor.open(path: "/etc/machine-id"),
      let bytes = try? file.readAll(limit: 4096)
    else { return nil }
    let id = bytes.prefix { $0 != UInt8(ascii: "\n") }
    return id.isEmpty ? nil : String(decoding: id, as: UTF8.self)
  }

  /// The boot ID of the running kernel, or nil if it is not available.
  public static var bootID: String? {
    guard let file = try? Descriptor.open(path: "/proc/sys/kernel/random/boot_id"),
      let bytes = try? file.readAll(limit: 4096), bytes.count >= 36
    else { return nil }
    return String(decoding: bytes.prefix(36), as: UTF8.self)
  }

  /// Whether the machine has mains power: a supply of the type `Mains` or `USB` is online, or no
  /// battery is discharging (systemd's rule for ConditionACPower).
  ///
  /// - Parameter supplies: the kernel's directory of power supplies
  ///   (`Documentation/ABI/testing/sysfs-class-power`).
  public static func isOnMainsPower(
    supplies: ByteString = "/sys/class/power_supply"
  ) -> Bool {
    guard let directory = try? Directory.open(path: supplies), let names = try? directory.names()
    else {
      return true
    }
    func value(_ name: ByteString, _ key: ByteString) -> String {
      let path = supplies.appending(name).appending(key)
      let bytes = try? Descriptor.open(path: path).readAll(limit: 4096)
      return String(decoding: (bytes ?? []).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
    let isOnline = names.contains { name in
      ["Mains", "USB"].contains(value(name, "type")) && value(name, "online") == "1"
    }
    if isOnline { return true }
    return !names.contains { name in
      value(name, "type") == "Battery" && value(name, "scope") != "Device"
        && value(name, "status") == "Discharging"
    }
  }

  /// The result of `writebackDelay(settings:)` when first used.
  public static let writebackDelay = writebackDelay(settings: "/proc/sys/vm")

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
