extension Host {
  /// Whether the machine has mains power: a supply of the type `Mains` or `USB` is online, or no
  /// battery is discharging (systemd's rule for ConditionACPower).
  ///
  /// - Parameter supplies: the kernel's directory of power supplies
  ///   (`Documentation/ABI/testing/sysfs-class-power`).
  package static func isOnMainsPower(
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
}
