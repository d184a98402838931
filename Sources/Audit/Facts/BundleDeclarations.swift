internal import Codecs
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// The Info.plist of a bundle in a container: that of the app, or of one of its extensions.
struct BundleDeclarations {
  /// The bundle's directory in the container: `Example.app/PlugIns/Share.appex`.
  let bundle: ByteString
  /// The path of the list in the container.
  let path: ByteString
  let isExtension: Bool
  let list: PropertyList

  /// A bundle whose list is not usable.
  struct Unusable {
    /// The path of the list in the container.
    let path: ByteString
    let reason: String
  }

  /// The lists of the bundles in a container.
  typealias Result = (found: [BundleDeclarations], unusable: [Unusable])

  /// Reads the lists of the bundles in a bundle container.
  static func all(in scan: ContainerScan, of device: Device) -> Result {
    guard scan.container.kind == .bundle, let app = scan.container.bundleDirectory else {
      return ([], [])
    }
    let owner = device.apps.first { $0.identifier == scan.container.owner }
    let bundles = [app] + (owner?.extensions.map(\.path) ?? [])
    var (found, unusable): ([BundleDeclarations], [Unusable]) = ([], [])
    for bundle in bundles {
      guard let path = place(in: bundle, scan) else { continue }
      do throws(UnusableList) {
        let list = try read(path, in: scan.container)
        found.append(
          BundleDeclarations(bundle: bundle, path: path, isExtension: bundle != app, list: list))
      } catch { unusable.append(Unusable(path: path, reason: error.reason)) }
    }
    return (found, unusable)
  }

  /// Returns the path of a bundle's list: at the top, as on iOS, or in `Contents`, as on macOS.
  private static func place(in bundle: ByteString, _ scan: ContainerScan) -> ByteString? {
    ["Info.plist", "Contents/Info.plist"].map { bundle.appending($0) }
      .first { scan.index(of: $0) != nil }
  }

  private static func read(
    _ path: ByteString, in container: Container
  ) throws(UnusableList) -> PropertyList {
    var reader: ContainerReader
    do throws(SystemError) {
      reader = try ContainerReader(container)
    } catch { throw UnusableList("its container cannot be opened: \(error.reason)") }
    return try reader.dictionary(path)
  }
}
