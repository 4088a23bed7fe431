"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = [];
  const coarse = matchMedia("(pointer: coarse)").matches;
  const CAUSES = { data_wait: "data_wait", launch: "other", sync: "sync", h2d: "h2d", comm: "grad_sync", other: "unattributed" };
  const KINDS = { copies: "h2d", communication: "grad_sync" };
  const CURVES = {
    "cores busy": "quiet", "memory free": "loss", "GPU busy (driver)": "forward", "GPU active (counters)": "accent", "SMs busy": "optimizer",
    "tensor cores busy": "data_wait", "GPU power": "other", "GPU power limit": "eval", "GPU memory in use": "grad_sync",
    "cores of training": "backward", "cores of workers": "checkpoint", "read from disk": "sync", "PCIe to the GPU": "h2d", "PCIe from the GPU": "recompute",
  };

  // -- words, as the rest of the report has them

  // English, or what stands for it in the page's language.
  const say = (text, ...values) => (data.words[text] ?? text).replace(/\{(\d)\}/g, (_, at) => values[at]);
  const figures = (value) => String(Number(value.toPrecision(3)));
  function seconds(value) {
    if (value >= 100) return value.toFixed(0) + " s";
    if (value >= 1) return figures(value) + " s";
    if (value >= 1e-3) return figures(value * 1e3) + " ms";
    return value > 0 ? figures(value * 1e6) + " \u00b5s" : "0";
  }
  const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";
  const amount = { share: percent, watts: (v) => figures(v) + " W", bytes: (v) => figures(v / 2 ** 30) + " GiB", cores: (v) => figures(v), rate: (v) => figures(v / 2 ** 20) + " MiB/s" };
  const safe = (text) => echarts.format.encodeHTML(String(text));
  const dot = (name) => `<span style="display:inline-block;width:.7em;height:.7em;border-radius:2px;margin-right:.4em;background:${colour(name)}"></span>`;
  const line = (name, left, right) => `<div style="display:flex;gap:1.2em;justify-content:space-between"><span>${name ? dot(name) : ""}${safe(left)}</span><b>${safe(right)}</b></div>`;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // -- what all charts have in common

  function axis(more) {
    return {
      axisLine: { lineStyle: { color: colour("line") } }, axisTick: { show: false },
      axisLabel: { color: colour("quiet"), hideOverlap: true }, splitLine: { lineStyle: { color: colour("line") } },
      nameTextStyle: { color: colour("quiet") }, ...more,
    };
  }
  function zooms(more) {
    const both = { filterMode: "none", ...more };
    return [
      { type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, disabled: coarse, ...both },
      {
        type: "slider", height: 16, bottom: 6, borderColor: "transparent", backgroundColor: colour("raised"), showDataShadow: false,
        fillerColor: colour("shade"), handleStyle: { color: colour("accent") }, moveHandleSize: 0, brushSelect: false, showDetail: false, ...both,
      },
    ];
  }
  const tooltip = (more) => ({
    confine: true, backgroundColor: colour("back"), borderColor: colour("line"), padding: [8, 10],
    textStyle: { color: colour("text"), fontSize: 13 }, extraCssText: "max-width:24rem;white-space:normal;overflow-wrap:anywhere;box-shadow:none", ...more,
  });
  const plain = () => ({ animation: false, textStyle: { fontFamily: "inherit" }, aria: { enabled: false } });

  function draw(id, option) {
    const place = document.getElementById(id);
    if (!place) return;
    const chart = echarts.init(place, null, { renderer: "svg" });
    const show = () => chart.setOption(option(), { notMerge: true });
    show();
    charts.push({ id, chart, show });
  }
  function redraw() {
    for (const { chart, show } of charts) {
      const [zoomed] = chart.getOption().dataZoom || [];
      show();
      if (zoomed) chart.dispatchAction({ type: "dataZoom", start: zoomed.start, end: zoomed.end });
    }
  }

  // -- the ledger over the steps

  let full = false;
  function ceiling(highest, usual) {
    const fits = highest < 4 * usual;
    document.getElementById("full").hidden = fits;
    return full || fits ? highest * 1.05 : 3 * usual;
  }
  function stepsOption() {
    const { steps } = data, bins = steps.least.length;
    const name = (bin) => {
      const first = bin * steps.width + 1, last = Math.min((bin + 1) * steps.width, steps.count);
      return first === last ? `${first}` : say("{0} to {1}", first, last);
    };
    const sums = steps.least.map((_, bin) => steps.means.reduce((sum, column) => sum + column[bin], 0));
    const highest = Math.max(...sums, ...(steps.width > 1 ? steps.most : []));
    const cut = ceiling(highest, steps.usual);
    const shaded = [[0, steps.warmup - 1], ...steps.watched].filter(([first, last]) => last >= first)
      .map(([first, last]) => [Math.floor(first / steps.width), 0, Math.floor(last / steps.width)]);
    const asBars = bins <= 150;
    const series = steps.phases.map((phase, i) => ({
      id: phase, name: say(data.phases[phase]), stack: "step", data: steps.means[i], color: colour(phase), emphasis: { disabled: true },
      ...(asBars ? { type: "bar", barCategoryGap: "6%" }
        : { type: "line", step: "middle", symbol: "none", lineStyle: { width: 0 }, areaStyle: { opacity: 1 } }),
    }));
    series.push({ id: "shaded", type: "custom", data: shaded, silent: true, z: 6, color: colour("shade"), encode: { x: [0, 2], y: 1 }, renderItem: shade, tooltip: { show: false } });
    if (steps.width >= 5) {
      series.push({ id: "longest", name: "longest of its bin", type: "line", data: steps.most, symbol: "none", color: colour("quiet"), lineStyle: { width: 0.8, opacity: 0.6 }, emphasis: { disabled: true } });
    }
    series.push({
      id: "singles", name: "far longer", type: "scatter", symbol: "triangle", symbolSize: 9, z: 7, color: colour("text"),
      itemStyle: { borderColor: colour("back"), borderWidth: 1 },
      data: steps.singles.map((s) => ({ value: [Math.floor(s.step / steps.width), Math.min(s.seconds, cut * 0.97)], single: s, itemStyle: { color: colour(s.phase) } })),
      tooltip: {
        trigger: "item",
        formatter: ({ data: { single } }) => line(null, say("step {0}", single.step + 1), seconds(single.seconds)) + line(single.phase, say("most of it"), say(data.phases[single.phase])),
      },
    });
    return {
      ...plain(), series,
      grid: { left: 8, right: 12, top: 16, bottom: 56, containLabel: true },
      xAxis: axis({ type: "category", data: steps.least.map((_, bin) => name(bin)), name: say("step"), nameLocation: "middle", nameGap: 26, splitLine: { show: false }, axisLabel: { color: colour("quiet"), hideOverlap: true, formatter: (text) => text.split(" ")[0] } }),
      yAxis: axis({ type: "value", max: cut, axisLabel: { color: colour("quiet"), formatter: seconds, showMaxLabel: false } }),
      dataZoom: zooms({ xAxisIndex: 0 }),
      tooltip: tooltip({
        trigger: "axis",
        formatter: (items) => {
          const bin = items[0].dataIndex, total = sums[bin];
          const rows = steps.phases.map((phase, i) => [phase, steps.means[i][bin]]).filter(([, v]) => v > total / 1000).sort((a, b) => b[1] - a[1]);
          const range = steps.width > 1 ? line(null, say("shortest, longest"), `${seconds(steps.least[bin])}, ${seconds(steps.most[bin])}`) : "";
          return line(null, say("step {0}", name(bin)), seconds(total)) + range + rows.map(([phase, v]) => line(phase, say(data.phases[phase]), `${seconds(v)}, ${percent(v / total)}`)).join("");
        },
      }),
    };
  }

  function shade(params, api) {
    const [band] = api.size([1, 0]), [first] = api.coord([api.value(0), 0]), [last] = api.coord([api.value(2), 0]), box = params.coordSys;
    const shape = echarts.graphic.clipRectByRect({ x: first - band / 2, y: box.y, width: last - first + band, height: box.height }, box);
    return shape && { type: "rect", shape, style: { fill: colour("shade") } };
  }

  // -- one step, moment by moment

  const LANES = [["host", say("host")], ["gpu", "GPU"], ["idle", say("GPU idle")]];
  const lanes = () => LANES.filter(([key]) => data.course.lanes[key].length);
  const tint = (lane, what) => (lane === "host" ? what : lane === "idle" ? CAUSES[what] : KINDS[what] || "busy");
  const told = (lane, what) => (lane === "host" ? say(data.phases[what]) : lane === "idle" ? say("idle: {0}", say(data.causes[what])) : say("kernels: {0}", say(what)));

  function courseOption() {
    const { course } = data, shown = lanes();
    const bars = shown.flatMap(([lane], row) => course.lanes[lane].map(([begin, end, what, at]) => ({
      value: [row, begin, end], told: told(lane, what), tint: tint(lane, what), at, itemStyle: { color: colour(tint(lane, what)) },
    })));
    return {
      ...plain(),
      grid: { left: 8, right: 16, top: 24, bottom: 58, containLabel: true },
      xAxis: axis({ type: "value", min: 0, max: course.end, name: say("since the step began"), nameLocation: "middle", nameGap: 26, axisLabel: { color: colour("quiet"), formatter: seconds, hideOverlap: true, showMaxLabel: false } }),
      yAxis: axis({ type: "category", inverse: true, data: shown.map(([, name]) => name), axisLabel: { color: colour("text") }, splitLine: { show: false } }),
      dataZoom: zooms({ xAxisIndex: 0, filterMode: "weakFilter" }),
      tooltip: tooltip({
        formatter: ({ data: bar }) => line(bar.tint, bar.told, seconds(bar.value[2] - bar.value[1])) + line(null, say("after"), seconds(bar.value[1])) + (bar.at ? `<div>${say("at {0}", safe(bar.at))}</div>` : ""),
      }),
      series: [{
        id: "bars", type: "custom", encode: { x: [1, 2], y: 0 }, data: bars,
        renderItem: (params, api) => {
          const [x, y] = api.coord([api.value(1), api.value(0)]), [right] = api.coord([api.value(2), api.value(0)]);
          const height = Math.min(api.size([0, 1])[1] * 0.68, 44), box = params.coordSys;
          const shape = echarts.graphic.clipRectByRect({ x, y: y - height / 2, width: Math.max(right - x, 0.2), height }, box);
          return shape && { type: "rect", shape, style: { fill: api.visual("color") } };
        },
        markLine: course.end > course.seconds * 1.001 ? { silent: true, precision: 9, symbol: "none", lineStyle: { color: colour("quiet"), type: "dashed" }, label: { formatter: say("the host went on"), color: colour("quiet"), position: "start", align: course.seconds > course.end / 2 ? "right" : "left", rotate: 0, distance: 4 }, data: [{ xAxis: course.seconds }] } : undefined,
      }],
    };
  }
  // -- legends, which wrap as text does

  function legend(id, names) {
    document.getElementById(id).replaceChildren(...[...names].map(([text, name]) => {
      const item = document.createElement("li"), swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = `var(--${name})`;
      item.append(swatch, text);
      return item;
    }));
  }
  const grouped = (lane, what) => (lane === "gpu" ? (KINDS[what] ? say(what) : say("kernels")) : told(lane, what));
  const courseNames = () => new Map(lanes().flatMap(([lane]) => data.course.lanes[lane].map(([, , what]) => [grouped(lane, what), tint(lane, what)])));

  // -- the machine over time

  const UNITS = [["share", "share"], ["cores", "cores"], ["watts", "power"], ["bytes", "memory"], ["rate", "bytes a second"]];
  const GRID = 118; // pixels of each
  const units = () => UNITS.filter(([unit]) => data.samples.curves.some((curve) => curve.unit === unit));
  function samplesOption() {
    const { samples, training } = data, rows = units();
    const ends = [samples.at[0], samples.at[samples.at.length - 1]];
    const series = samples.curves.map((curve) => {
      const row = rows.findIndex(([unit]) => unit === curve.unit);
      return {
        id: curve.name, name: curve.name, type: "line", symbol: "none", xAxisIndex: row, yAxisIndex: row, connectNulls: false, color: colour(CURVES[curve.name]),
        lineStyle: { width: 1.6, type: curve.name.endsWith("limit") ? "dashed" : "solid" }, emphasis: { disabled: true }, data: samples.at.map((moment, j) => [moment, curve.values[j]]),
      };
    });
    rows.forEach((_, row) => {
      if (training) series.push({ id: "training" + row, type: "line", data: [], silent: true, xAxisIndex: row, yAxisIndex: row, markArea: { silent: true, itemStyle: { color: colour("shade"), opacity: 0.5 }, data: [[{ xAxis: Math.max(training[0], ends[0]) }, { xAxis: Math.min(training[1], ends[1]) }]] } });
    });
    return {
      ...plain(), series,
      grid: rows.map((_, row) => ({ left: 64, right: 14, top: 12 + row * GRID, height: GRID - 24 })),
      xAxis: rows.map((_, row) => axis({ type: "value", gridIndex: row, min: ends[0], max: ends[1], splitLine: { show: false }, axisLabel: { show: row === rows.length - 1, color: colour("quiet"), formatter: (v) => Number(v.toPrecision(4)) + " s", hideOverlap: true, showMaxLabel: false } })),
      yAxis: rows.map(([unit], row) => axis({ type: "value", gridIndex: row, min: 0, max: unit === "share" ? 1 : null, splitNumber: 2, axisLabel: { color: colour("quiet"), formatter: amount[unit] } })),
      dataZoom: zooms({ xAxisIndex: rows.map((_, row) => row) }),
      axisPointer: { link: [{ xAxisIndex: "all" }] },
      tooltip: tooltip({
        trigger: "axis",
        formatter: (items) => {
          const j = items[0].dataIndex;
          return line(null, say("after"), seconds(samples.at[j])) + samples.curves.map((curve) => (curve.values[j] === null ? "" : line(CURVES[curve.name], say(curve.name), amount[curve.unit](curve.values[j])))).join("");
        },
      }),
    };
  }

  // -- changes, measured beside predicted

  const MARKS = [[say("measured, with its interval"), "accent"], [say("each pair of runs"), "quiet"], [say("predicted"), "other"], [say("too little to be claimed"), "line"]];
  const times = (value) => value.toFixed(2) + "\u00d7";
  function changesOption() {
    const { changes } = data, names = changes.map((change) => (change.on ? say("{0} on top of {1}", change.name, change.on) : change.name));
    const seen = changes.flatMap((change) => [change.speedup, change.predicted].filter(Boolean).map((e) => e.value).concat(change.ratios));
    const [least, most] = [Math.min(0.95, ...seen), Math.max(1.05, ...seen)], room = 0.12 * (most - least);
    const spans = (of, name, width) => ({
      id: name, type: "custom", z: 3, clip: true, data: changes.flatMap((change, row) => (change[of] ? [{ value: [row, change[of].low, change[of].high], change }] : [])), encode: { x: [1, 2], y: 0 },
      renderItem: (params, api) => {
        const [x, y] = api.coord([api.value(1), api.value(0)]), [right] = api.coord([api.value(2), api.value(0)]), lower = of === "predicted" ? 9 : 0;
        return { type: "line", shape: { x1: x, x2: right, y1: y + lower, y2: y + lower }, style: { stroke: colour(of === "predicted" ? "other" : "accent"), lineWidth: width } };
      },
    });
    const points = (of, name, symbol, size, shift) => ({
      id: name, type: "scatter", symbol, symbolSize: size, symbolOffset: [0, shift], z: 4, color: colour(of === "predicted" ? "other" : "accent"), encode: { x: 1, y: 0 },
      data: changes.flatMap((change, row) => (change[of] ? [{ value: [row, change[of].value], change }] : [])),
    });
    return {
      ...plain(),
      grid: { left: 8, right: 24, top: 8, bottom: 40, containLabel: true },
      xAxis: axis({ type: "value", min: Math.max(least - room, 0), max: most + room, name: say("times as fast"), nameLocation: "middle", nameGap: 26, axisLabel: { color: colour("quiet"), formatter: times, hideOverlap: true, showMinLabel: false, showMaxLabel: false } }),
      yAxis: axis({ type: "category", inverse: true, data: names, axisLabel: { color: colour("text"), width: 180, overflow: "truncate" }, splitLine: { show: false } }),
      tooltip: tooltip({
        formatter: ({ data: { change } }) => change && line(null, change.name, say(change.verdict))
          + (change.speedup ? line("accent", say("measured"), say("{0} ({1} to {2}), {3} pairs", times(change.speedup.value), times(change.speedup.low), times(change.speedup.high), change.speedup.n)) : "")
          + (change.predicted ? line("other", say("predicted"), say("{0} ({1} to {2})", times(change.predicted.value), times(change.predicted.low), times(change.predicted.high))) : ""),
      }),
      series: [
        {
          id: "noise", type: "custom", silent: true, clip: true, z: 1, data: changes.flatMap((change, row) => (change.claimed === null ? [] : [[row, 1 / (1 + change.claimed), 1 + change.claimed]])), encode: { x: [1, 2], y: 0 },
          renderItem: (params, api) => {
            const [x, y] = api.coord([api.value(1), api.value(0)]), [right] = api.coord([api.value(2), api.value(0)]), height = api.size([0, 1])[1];
            return { type: "rect", shape: { x, y: y - height / 2, width: right - x, height }, style: { fill: colour("shade") } };
          },
        },
        { id: "pairs", type: "scatter", silent: true, symbolSize: 5, symbolOffset: [0, -9], z: 2, color: colour("quiet"), itemStyle: { opacity: 0.6 }, encode: { x: 1, y: 0 }, data: changes.flatMap((change, row) => change.ratios.map((ratio) => [row, ratio])) },
        spans("predicted", "predicted interval", 1.5), points("predicted", "predicted", "diamond", 9, 9),
        spans("speedup", "interval", 2.5), points("speedup", "measured", "circle", 10, 0),
        { id: "as it is", type: "line", silent: true, data: [], markLine: { silent: true, symbol: "none", precision: 9, label: { show: false }, lineStyle: { color: colour("quiet"), type: "solid", width: 1 }, data: [{ xAxis: 1 }] } },
      ],
    };
  }

  // -- the steps of two runs

  const RUNS = { a: ["A", "quiet"], b: ["B", "accent"] };
  function pacesOption() {
    const { paces, per } = data, sides = Object.keys(RUNS);
    const cut = ceiling(Math.max(...sides.flatMap((side) => paces[side].means)), Math.max(...sides.map((side) => paces[side].usual)));
    return {
      ...plain(),
      grid: { left: 8, right: 24, top: 16, bottom: 56, containLabel: true },
      xAxis: axis({ type: "value", min: 0, max: Math.max(...sides.map((side) => paces[side].ends.at(-1))), name: say("time of steps that count"), nameLocation: "middle", nameGap: 26, splitLine: { show: false }, axisLabel: { color: colour("quiet"), formatter: seconds, hideOverlap: true, showMaxLabel: false } }),
      yAxis: axis({ type: "value", min: 0, max: cut, axisLabel: { color: colour("quiet"), formatter: seconds, showMaxLabel: false } }),
      dataZoom: zooms({ xAxisIndex: 0 }),
      tooltip: tooltip({ trigger: "axis", formatter: (items) => items.map(({ seriesId, value }) => line(RUNS[seriesId][1], `${RUNS[seriesId][0]}, ${seconds(value[0])}`, per === "step" ? say("{0} a step", seconds(value[1])) : say("{0} a sample", seconds(value[1])))).join("") }),
      series: sides.map((side) => ({
        id: side, name: RUNS[side][0], type: "line", step: "start", symbol: "none", color: colour(RUNS[side][1]), emphasis: { disabled: true },
        lineStyle: { width: 1.6 }, data: [[0, paces[side].means[0]], ...paces[side].ends.map((end, bin) => [end, paces[side].means[bin]])],
        endLabel: { show: true, formatter: RUNS[side][0], color: colour("text"), fontWeight: "bold" },
      })),
    };
  }

  // -- buttons

  function zoom(id, how) {
    const { chart } = charts.find((known) => known.id === id);
    let { start, end } = chart.getOption().dataZoom[0];
    const width = end - start, middle = (start + end) / 2;
    if (how === "in") [start, end] = [middle - width / 4, middle + width / 4];
    if (how === "out") [start, end] = [middle - width, middle + width];
    if (how === "left") [start, end] = start < width / 2 ? [0, width] : [start - width / 2, end - width / 2];
    if (how === "right") [start, end] = end > 100 - width / 2 ? [100 - width, 100] : [start + width / 2, end + width / 2];
    if (how === "reset") [start, end] = [0, 100];
    chart.dispatchAction({ type: "dataZoom", start: Math.max(start, 0), end: Math.min(end, 100) });
  }
  async function copy(button) {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
      document.execCommand("copy");
    }
    document.querySelector(".announce").textContent = say("Copied: {0}", text);
    button.textContent = say("Copied");
    setTimeout(() => (button.textContent = say("Copy")), 1500);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.copy) copy(button);
    if (button.dataset.zoom) zoom(button.closest(".tools").dataset.for, button.dataset.zoom);
    if (button.id === "full") {
      full = !full;
      button.setAttribute("aria-pressed", String(full));
      redraw();
    }
  });

  for (const time of document.querySelectorAll("time[data-started]")) {
    const moment = new Date(1000 * Number(time.dataset.started));
    time.dateTime = moment.toISOString();
    time.textContent = moment.toLocaleString(document.documentElement.lang === "en" ? undefined : document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  }
  if (data.steps) {
    legend("legend-steps", data.steps.phases.map((phase) => [say(data.phases[phase]), phase]));
    draw("chart-steps", stepsOption);
  }
  if (data.course) {
    legend("legend-course", courseNames());
    document.getElementById("chart-course").style.height = `${64 * lanes().length + 92}px`;
    draw("chart-course", courseOption);
  }
  if (data.samples) {
    legend("legend-samples", data.samples.curves.map((curve) => [say(curve.name), CURVES[curve.name]]));
    document.getElementById("chart-samples").style.height = `${GRID * units().length + 64}px`;
    draw("chart-samples", samplesOption);
  }
  if (data.changes) {
    legend("legend-changes", MARKS);
    document.getElementById("chart-changes").style.height = `${56 * data.changes.length + 60}px`;
    draw("chart-changes", changesOption);
  }
  if (data.paces) {
    legend("legend-paces", Object.values(RUNS));
    draw("chart-paces", pacesOption);
  }
  const fit = () => charts.forEach(({ chart }) => chart.resize());
  addEventListener("resize", fit);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => { document.documentElement.dataset.scheme = "light"; redraw(); fit(); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.scheme; redraw(); fit(); });
})();
