public import SystemIO

/// Names of apps, as given by the user. They may belong to several devices; each device uses the
/// names that it has.
public struct AppNames: Sendable {
  private let names: [ByteString]

  /// Creates the names; an empty list selects all apps.
  public init(_ names: [ByteString] = []) { self.names = names }

  /// Returns the named apps of a device.
  ///
  /// - Throws: `ModelError` if the device has none of them, or for an ambiguous name.
  public func apps(of device: Device) throws(ModelError) -> [App] {
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

  /// Returns the devices that have one of the apps; all devices if no app is named.
  ///
  /// - Parameter isAll: whether these are all the devices that may have one of the apps.
  /// - Throws: `ModelError` for a name that none of them has.
  public func holders(among devices: [Device], isAll: Bool = true) throws(ModelError) -> [Device] {
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

  /// Returns the elements whose devices have one of the apps, and those whose devices could not be
  /// opened, because these may have them; all elements if no app is named.
  ///
  /// - Throws: `ModelError` for a name that none of the devices has, if all were opened.
  public func holders<Choice>(
    _ found: [(choice: Choice, device: Result<Device, any Error>)]
  ) throws(ModelError) -> [(choice: Choice, device: Result<Device, any Error>)] {
    if names.isEmpty { return found }
    let devices = found.compactMap { try? $0.device.get() }
    let holders = try holders(among: devices, isAll: devices.count == found.count)
    return found.filter { element in
      guard let device = try? element.device.get() else { return true }
      return holders.contains { $0.identity == device.identity }
    }
  }
}
