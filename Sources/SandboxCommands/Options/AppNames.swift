internal import SandboxModel
internal import SystemIO

/// Names of apps as a user gave them, which may be of several devices: each device's part of them is what
/// it has.
struct AppNames {
  private let names: [ByteString]

  init(_ names: [ByteString]) { self.names = names }

  /// Those of the apps that a device has.
  ///
  /// - Throws: where it has none of them, and for a name that means several.
  func apps(of device: Device) throws(ModelError) -> [App] {
    var (found, missing) = ([App](), nil as ModelError?)
    for name in names {
      do throws(ModelError) {
        found.append(try device.app(name))
      } catch {
        if error.code != .noApp { throw error }
        missing = missing ?? error
      }
    }
    if found.isEmpty, let missing { throw missing }
    return found
  }

  /// Those of some devices that have one of the apps; all, where none is named.
  ///
  /// - Parameter isAll: whether these are all devices that may have one.
  /// - Throws: for a name that none of them has.
  func holders(among devices: [Device], isAll: Bool = true) throws(ModelError) -> [Device] {
    if names.isEmpty { return devices }
    for name in names where isAll {
      var missing: ModelError?
      for device in devices {
        do throws(ModelError) {
          _ = try device.app(name)
          missing = nil
          break
        } catch {
          if error.code != .noApp { throw error }
          missing = missing ?? error
        }
      }
      if let missing { throw missing }
    }
    return devices.filter { (try? apps(of: $0)) != nil }
  }
}
