// ---- Figures under the pointer and the keys: tooltip, arrows, zoom --------------------------------------

const tooltip = document.getElementById("tooltip");
const hideTooltip = () => { tooltip.hidden = true; };
function showTooltip(x, y, text) {
  tooltip.textContent = text;
  tooltip.hidden = false;
  const tip = tooltip.getBoundingClientRect();
  const left = x + 14 + tip.width < window.innerWidth - 8 ? x + 14 : Math.max(8, x - tip.width - 14);
  const top = y - tip.height - 12 > 4 ? y - tip.height - 12 : y + 16;
  tooltip.style.left = `${left + window.scrollX}px`;
  tooltip.style.top = `${top + window.scrollY}px`;
}

function showSpot(figure, spot) {
  figure.at = figure.spots.indexOf(spot);
  figure.ring.attr("cx", spot.x).attr("cy", spot.y).attr("visibility", "visible");
  const frame = figure.svg.node().getBoundingClientRect(), scale = frame.width / figure.width;
  showTooltip(frame.left + spot.x * scale, frame.top + spot.y * scale, spot.text(spot.item));
}

function hideSpot(figure) {
  if (figure.ring) figure.ring.attr("visibility", "hidden");
  hideTooltip();
}

function watchPointer(figure) {
  const node = figure.svg.node();
  const spotAt = (event) => {
    if (!figure.tree) return null;
    const frame = node.getBoundingClientRect(), scale = figure.width / frame.width;
    return figure.tree.find((event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale, 26);
  };
  node.addEventListener("pointermove", (event) => {
    const spot = spotAt(event);
    if (spot) showSpot(figure, spot); else hideSpot(figure);
  });
  node.addEventListener("pointerleave", () => hideSpot(figure));
  node.addEventListener("click", (event) => {
    const spot = spotAt(event);
    if (spot && spot.item.row && spot.item.ref) openCase(spot.item);
  });
}

function watchKeys(figure) {
  const node = figure.svg.node();
  const go = (to) => {
    if (!figure.spots.length) return;
    figure.spots.sort((a, b) => a.x - b.x || b.y - a.y);
    showSpot(figure, figure.spots[(to + figure.spots.length) % figure.spots.length]);
  };
  node.addEventListener("focus", () => {
    if (node.matches(":focus-visible")) go(figure.at ?? 0);
  });
  node.addEventListener("blur", () => hideSpot(figure));
  node.addEventListener("keydown", (event) => {
    const at = figure.at ?? -1;
    const actions = {
      ArrowRight: () => go(at + 1), ArrowUp: () => go(at + 1), ArrowLeft: () => go(at - 1),
      ArrowDown: () => go(at - 1), Home: () => go(0), End: () => go(-1),
      Escape: () => hideSpot(figure),
      Enter: () => {
        const spot = figure.spots[at];
        if (spot && spot.item.row && spot.item.ref) openCase(spot.item);
      },
    };
    if (figure.zoom) {
      actions["+"] = () => figure.zoomBy(1.5);
      actions["-"] = () => figure.zoomBy(1 / 1.5);
      actions["0"] = () => figure.zoomBy(0);
    }
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    actions[event.key]();
    event.preventDefault();
  });
}

// Ctrl and wheel, a pinch, or a drag once zoomed: the scales change, the text does not grow.
function watchZoom(figure) {
  const zoom = d3.zoom().scaleExtent([1, 200]);
  // D3 before version 6 has the event in d3.event, later ones hand it in.
  zoom.filter((event) => {
    const e = d3.event || event;
    if (e.type === "wheel") return e.ctrlKey || e.metaKey;
    if (e.touches) return e.touches.length > 1;
    return e.type !== "dblclick" && !e.button && figure.transform.k > 1;
  });
  zoom.on("zoom", () => {
    figure.transform = d3.zoomTransform(figure.svg.node());
    hideTooltip();
    drawFigure(figure);
  });
  // Panning stops at the frame's edges.
  const limits = () => zoom.extent([[0, 0], [figure.width, figure.height]])
      .translateExtent([[0, 0], [figure.width, figure.height]]);
  figure.svg.call(zoom).style("touch-action", "pan-x pan-y").on("dblclick.zoom", null);
  figure.svg.node().addEventListener("dblclick", () => figure.zoomBy(0));
  figure.zoomBy = (factor) => {
    if (factor) figure.svg.call(zoom.scaleBy, factor);
    else figure.svg.call(zoom.transform, d3.zoomIdentity);
  };
  figure.limits = limits;
}
